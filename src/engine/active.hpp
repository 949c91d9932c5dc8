#pragma once
// The engine's interface for active messages (docs/am.md): messages with a small word that run a handler of the AM
// layer. The engine only transports them, and calls no handler. Arrivals are pulled: next_arrival() returns the first
// complete one in place, and release_arrival() returns its memory.
//
// A message is a request, a reply, or the engine's notice that a message was refused. Requests and replies have a head
// and data, which the AM layer divides as it likes. Data of a placed message goes directly into the target port's
// segment. The engine decides only about that, and whether the sender has access. It answers refused messages with a
// `returned` message, so nothing vanishes.
//
// Limits: a port holds at most active_messages_max arrivals and active_memory_max bytes. A request beyond that is
// returned with `again`, and its sender may retry. Replies may take as much again, because they were requested. One
// beyond that arrives without its bytes and with status no_memory.

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
  returned,  // tells the sender of a refused request the reason in `status`
  rejected,  // tells the sender of a refused reply the reason in `status`
};

struct ActiveMessage {
  RemotePort to{};
  ActiveKind kind = ActiveKind::request;
  Status status = Status::ok;  // of returned and rejected
  bool is_placed = false;      // data goes to `offset` in the target's segment
  std::uint16_t word = 0;      // defined by the AM layer
  // Bytes at the start of the memory that are not data; a multiple of 8, at most kActiveHeadMax.
  std::uint16_t head = 0;
  std::uint64_t access = 0;  // of a request: checked by the target's access rule
  std::uint64_t name = 0;    // name of the exchange, chosen by the AM layer (open_requests.hpp); repeated in the reply
  std::uint64_t reply_access = 0;   // of all other kinds: repeats the value of the message that they answer
  std::uint64_t offset = 0;         // bytes into the target's segment
  std::span<const iovec> memory{};  // at most 1024 pieces
  std::uint64_t length = 0;         // bytes of the memory to send, including the head
  std::uint64_t cookie = 0;         // of the completion, unless is_copied(length)
};
inline constexpr std::size_t kActiveHeadMax = 128;
inline constexpr std::size_t kActivePackedMost = 1024;  // upper bound of the option active_packed_max

/// A complete message (or `status` says why it is not). The AM layer owns it until release_arrival().
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
  std::byte* data = nullptr;        // placed: in the segment; else after the head
  std::uint64_t data_length = 0;

  // Owned by the engine: a buffer of this arrival and its size class, if the message was not packed.
  std::byte* buffer = nullptr;
  std::uint8_t buffer_class = 0;
  bool is_reply_memory = false;
  alignas(8) std::array<std::byte, kActivePackedMost + kActiveHeadMax> packed;
};

/// Selects the senders whose requests a port accepts.
struct AccessRule {
  enum class Kind : std::uint8_t { none, equal, all } kind = Kind::none;
  std::uint64_t access = 0;
};

/// Memory that placed messages may write. A null base with a length is valid: addresses from 0 on.
struct Segment {
  std::byte* base = nullptr;
  std::uint64_t length = 0;
  /// Also works if the segment is the whole address space from null on.
  std::byte* at(std::uint64_t offset) const {
    return std::bit_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + offset);
  }
};

/// An association with another engine. Several may exist, in sequence or over two transports at once.
struct Conversation {
  std::uint64_t way = 0;     // the transport's peer handle; 0: within this engine
  std::uint64_t losses = 0;  // number of losses of all peers when it was looked up
};

/// The end of a conversation. Requests that the peer accepted but did not answer will not be answered.
struct PeerLoss {
  base::SocketAddress engine;
  Status status = Status::ok;  // unreachable, silent, restarted or refused
  bool has_left = false;       // orderly: the peer had announced its end
  std::uint64_t way = 0;
  std::uint64_t mark = 0;  // sequence number of this loss
  bool ends(const Conversation& conversation) const { return conversation.way == way && conversation.losses < mark; }
};

/// As in Core, [consumer] calls on one port must not overlap.
class ActivePorts {
 public:
  virtual ~ActivePorts() = default;

  /// Makes the port accept active messages, according to its access rule and segment (initially none).
  virtual Status activate(PortHandle port) = 0;
  virtual Status set_access(PortHandle port, const AccessRule& rule) = 0;
  /// After it returns, nothing writes to the previous segment any more.
  virtual Status set_segment(PortHandle port, const Segment& segment) = 0;

  /// Returns whether send_active() copies a message of this length; it then completes silently. Others use the caller's
  /// memory until the completion with their cookie, whose event must be reserved first.
  virtual bool is_copied(std::uint64_t length) const = 0;
  /// Returns ok, or again / no_memory / invalid / unreachable if nothing was sent. `conversation` receives the
  /// association whose loss affects the message; only has_ended() can tell what it means.
  virtual Status send_active(PortHandle port, const ActiveMessage& message, Conversation& conversation) = 0;

  /// Ends waiting for the answer to a request: from now on no answer is accepted or placed.
  virtual void forget_request(PortHandle port, std::uint64_t name) = 0;

  /// [consumer] Returns the first complete arrival, or null. Makes no progress.
  virtual Arrival* next_arrival(PortHandle port) = 0;
  /// [consumer] Returns an arrival to the engine.
  virtual void release_arrival(PortHandle port, Arrival& arrival) = 0;
  /// Returns whether next_arrival() would find one. Thread-safe.
  virtual bool has_arrival(PortHandle port) const = 0;

  /// Waits like Core::wait() for an event or an arrival at any of the ports (at most kWaitPortsMax).
  virtual bool wait_any(std::span<const PortHandle> ports, base::Instant deadline) = 0;
  static constexpr std::size_t kWaitPortsMax = 256;

  /// Returns the number of losses so far. Thread-safe, without a lock.
  virtual std::uint64_t losses() const = 0;
  /// Gets the loss after the first `seen` ones and advances `seen`. Returns false if there is none. The last
  /// kLossesKept losses are kept; a slower reader gets the oldest of them.
  virtual bool next_loss(std::uint64_t& seen, PeerLoss& loss) = 0;
  static constexpr std::uint64_t kLossesKept = 4096;
  /// Returns whether that loss ends the conversation of an open request: its answer will not come.
  virtual bool has_ended(const Conversation& conversation, const PeerLoss& loss) const {
    return loss.ends(conversation);
  }
  /// Sends an empty message to a peer that has been silent for a while: it acknowledges, or is lost.
  virtual void ask_peer(const base::SocketAddress& engine) = 0;
};

}  // namespace fairlead::engine
