#pragma once
// Active messages as a face sees them (docs/am.md): messages that carry a small word and run a handler of the face. The
// engine only transports them; it runs nothing and calls nobody. Arrivals are pulled: next_arrival() gives the first
// complete one, where it lies, and release_arrival() gives the memory back.
//
// A message is a request, a reply (both with a head and data, the face's own division of its bytes), or the engine's
// word that a request was not taken. Data of a placed message goes straight into the target port's segment; that, and
// whether the sender may at all (access), is the one thing the engine decides. It answers what it refuses with a
// `returned` message, so nothing vanishes.
//
// Bounds. A port holds at most active_messages_max arrivals and active_memory_max bytes; a request beyond is returned
// `again`, and its sender may try later. Replies were asked for and may take as much again; one beyond that arrives
// without its bytes, status no_memory.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/uio.h>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "engine/completion.hpp"
#include "engine/handles.hpp"
#include "queue/task_queue.hpp"

namespace fairlead::engine {

enum class ActiveKind : std::uint8_t {
  request,
  reply,
  returned,  // to the sender of a request that was not taken: status says why
  rejected,  // to the sender of a reply that was not taken: status says why
};

struct ActiveMessage {
  RemotePort to{};
  ActiveKind kind = ActiveKind::request;
  Status status = Status::ok;       // returned, rejected
  bool is_placed = false;           // data goes to `offset` of the target's segment
  std::uint16_t word = 0;           // the face's own
  std::uint16_t head = 0;           // first bytes of memory that are not data; a multiple of 8, at most kActiveHeadMax
  std::uint64_t access = 0;         // request: shown to the target's access rule
  std::uint64_t name = 0;           // of the exchange; the face's own (open_requests.hpp), comes back in the reply
  std::uint64_t reply_access = 0;   // all others: what the message carried that they answer
  std::uint64_t offset = 0;         // bytes into the target's segment
  std::span<const iovec> memory{};  // at most 1024 pieces
  std::uint64_t length = 0;         // of the memory, from its start, head included
  std::uint64_t cookie = 0;         // of the completion, if length > active_copied_max()
};
inline constexpr std::size_t kActiveHeadMax = 128;
inline constexpr std::size_t kActivePackedMost = 1024;  // upper bound of the option active_packed_max

/// One message that has come completely (or `status` says why not). The face's until release_arrival().
struct Arrival : queue::TaskLink {
  ActiveKind kind = ActiveKind::request;
  Status status = Status::ok;
  bool is_placed = false;
  std::uint16_t word = 0;
  std::uint16_t head = 0;
  std::uint64_t reply_access = 0;
  RemotePort source;
  std::uint64_t access = 0;
  std::uint64_t name = 0;
  std::uint64_t offset = 0;
  std::byte* head_bytes = nullptr;  // aligned to 8
  std::byte* data = nullptr;        // placed: in the segment; else behind the head
  std::uint64_t data_length = 0;

  // The engine's: a buffer of this arrival and its size class, if the message was not packed.
  std::byte* buffer = nullptr;
  std::uint8_t buffer_class = 0;
  bool is_reply_memory = false;
  alignas(8) std::array<std::byte, kActivePackedMost + kActiveHeadMax> packed;
};

/// Whose requests a port takes.
struct AccessRule {
  enum class Kind : std::uint8_t { none, equal, all } kind = Kind::none;
  std::uint64_t access = 0;
};

/// Memory that placed messages may write. Base null with a length means what it says: addresses from 0 on.
struct Segment {
  std::byte* base = nullptr;
  std::uint64_t length = 0;
  /// Also where the segment is the whole address space from null on.
  std::byte* at(std::uint64_t offset) const {
    return std::bit_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + offset);
  }
};

/// With another engine. There may be several, one after the other or on two ways at once.
struct Conversation {
  std::uint64_t way = 0;     // 0: within this engine
  std::uint64_t losses = 0;  // of whatever peer, when it was looked up
};

/// The end of a conversation: requests that it took and that have not been replied to will not be.
struct PeerLoss {
  base::SocketAddress engine;
  Status status = Status::ok;  // unreachable, silent, restarted, refused
  bool has_left = false;       // in order: it had said that it ends
  std::uint64_t way = 0;
  std::uint64_t mark = 0;  // this is the how many-th loss
  bool ends(const Conversation& conversation) const { return conversation.way == way && conversation.losses < mark; }
};

/// [consumer] as in Core: these calls of one port must not overlap.
class ActivePorts {
 public:
  virtual ~ActivePorts() = default;

  /// From now on the port takes active messages, by its rule and segment (none at first).
  virtual Status activate(PortHandle port) = 0;
  virtual Status set_access(PortHandle port, const AccessRule& rule) = 0;
  /// When it returns, nothing writes to the segment before any more.
  virtual Status set_segment(PortHandle port, const Segment& segment) = 0;

  /// Messages up to this length are copied by send_active() and complete silently; memory of longer ones is the
  /// engine's until the completion with their cookie (reserve the event first).
  virtual std::uint64_t active_copied_max() const = 0;
  /// ok, or again / no_memory / invalid / unreachable and nothing was taken. `conversation`: whose loss will
  /// be the message's.
  virtual Status send_active(PortHandle port, const ActiveMessage& message, Conversation& conversation) = 0;

  /// The face waits no longer for the answer to a request: from now on none is let in, and nothing is placed by one.
  virtual void forget_request(PortHandle port, std::uint64_t name) = 0;

  /// [consumer] The first arrival that is complete, or null. Makes no progress.
  virtual Arrival* next_arrival(PortHandle port) = 0;
  /// [consumer]
  virtual void release_arrival(PortHandle port, Arrival& arrival) = 0;
  /// Whether next_arrival() would find one. Any thread.
  virtual bool has_arrival(PortHandle port) const = 0;

  /// Waits like Core::wait() for an event or an arrival of any of the ports (at most kWaitPortsMax).
  virtual bool wait_any(std::span<const PortHandle> ports, base::Instant deadline) = 0;
  static constexpr std::size_t kWaitPortsMax = 256;

  /// Number of losses so far. Any thread, no lock.
  virtual std::uint64_t losses() const = 0;
  /// The first loss after the first `seen` ones (then moved on); false if there is none. The last kLossesKept are
  /// kept: whoever is further behind is told the oldest of them.
  virtual bool next_loss(std::uint64_t& seen, PeerLoss& loss) = 0;
  static constexpr std::uint64_t kLossesKept = 4096;
  /// Sends a peer that we have not heard for a while a message that asks for nothing: it acknowledges, or is lost.
  virtual void ask_peer(const base::SocketAddress& engine) = 0;
};

}  // namespace fairlead::engine
