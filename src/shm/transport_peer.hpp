#pragma once
// What the transport knows of a peer, and all peers by slot and address. A slot is used again under another generation.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <sys/uio.h>

#include "base/fifo.hpp"
#include "base/sip_hash.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "shm/connection_table.hpp"
#include "shm/tickets.hpp"
#include "wire/envelope.hpp"

namespace fairlead::shm {

/// Memory for the copy of a short message.
using Block = std::array<std::byte, 1024>;

/// What found no room in the ring.
struct Waiting {
  link::Outgoing message;
  Block* copy = nullptr;  // of a short message
  bool is_void = false;   // taken back, and has ended
};
/// What the peer's reader has not passed yet.
struct Pending {
  static constexpr std::uint32_t kNobody = ~0U;
  static constexpr std::uint32_t kNoTicket = ~0U;  // as a ticket: it has ended

  std::uint64_t line = 0;  // when the reader has passed it ...
  std::uint64_t cookie = 0;
  std::uint32_t owner = kNobody;  // nobody: an outcome of submit()
  std::uint32_t length = 0;       // or, of an outcome, the ticket of what the peer reads where it lies; 0: none
  /// Word by word, in its place: a copy of what was just written would wait for it.
  void set(std::uint64_t at_line, std::uint64_t its_cookie, std::uint32_t its_owner, std::size_t bytes) {
    line = at_line;
    cookie = its_cookie;
    owner = its_owner;
    length = static_cast<std::uint32_t>(bytes);
  }
};
/// How much of a message that lies in pieces has been copied.
struct GatherPosition {
  std::uint64_t bytes = 0;
  std::size_t piece = 0, offset = 0;  // where the next byte is

  void copy(std::span<const iovec> pieces, std::byte* out, std::size_t count) {
    bytes += count;
    while (count > 0) {
      const iovec& from = pieces[piece];
      const std::size_t part = std::min(count, from.iov_len - offset);
      if (part > 0) std::memcpy(out, static_cast<const std::byte*>(from.iov_base) + offset, part);
      out += part;
      count -= part;
      offset += part;
      if (offset == from.iov_len) {
        ++piece;
        offset = 0;
      }
    }
  }
};

/// The message of a peer that comes in chunks.
struct Arriving {
  bool is_under_way = false;
  wire::Envelope envelope;
  std::uint64_t size = 0, done = 0, target = 0;
  std::uint64_t done_seen = 0;  // at the last look
  base::Instant moved_at{};
};
struct TransportPeer {
  base::SocketAddress address;
  std::uint32_t generation = 1;
  std::uint32_t connection_slot = ConnectionTable::kNone;
  bool is_used = false;
  bool is_busy = false;             // in busy_
  bool has_stopped = false;         // and is ended for that
  std::optional<base::SipKey> key;  // of its session over the network
  base::Fifo<Waiting> shorts, longs;
  base::Fifo<Pending> pending;
  std::unique_ptr<Tickets> tickets;  // made with the first
  GatherPosition long_sent;          // of the first long message
  Arriving arriving;
  std::uint64_t passed_seen = 0;
  base::Instant moved_at{};
  base::Instant seek_until{}, seek_next{};
  bool is_idle() const { return shorts.empty() && longs.empty() && pending.empty(); }
  /// Whether what is pending has had its end already: taken back, or refused.
  bool has_ended(const Pending& one) const {
    return one.length == Pending::kNoTicket || (one.length != 0 && !tickets->is_good(one.length));
  }
  /// The peer has passed what it was given a ticket for. False if that had ended before.
  bool end_ticket(const Pending& one, Tickets::Words& words) {
    return one.length != Pending::kNoTicket && tickets->end(words, one.length);
  }
  bool is_awaited() const { return !is_idle() || arriving.is_under_way; }
};

class TransportPeers {
 public:
  static constexpr std::uint32_t kFirstSlot = 1U << 20;  // of handles; smaller ones are the link's
  static constexpr std::uint32_t kNone = ~0U;

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(peers_.size()); }
  TransportPeer& operator[](std::uint32_t index) { return *peers_[index]; }
  const TransportPeer& operator[](std::uint32_t index) const { return *peers_[index]; }
  TransportPeer& operator[](link::PeerHandle handle) { return *peers_[handle.slot - kFirstSlot]; }
  const TransportPeer& operator[](link::PeerHandle handle) const { return *peers_[handle.slot - kFirstSlot]; }
  /// Null if it is another's by now.
  TransportPeer* find(link::PeerHandle handle) {
    const std::uint32_t index = handle.slot - kFirstSlot;
    if (index >= peers_.size()) [[unlikely]]
      return nullptr;
    TransportPeer& peer = *peers_[index];
    return peer.generation == handle.generation ? &peer : nullptr;
  }
  link::PeerHandle handle_of(std::uint32_t index) const { return {kFirstSlot + index, peers_[index]->generation}; }
  /// Peers that are known, reached or not.
  bool empty() const noexcept { return by_address_.empty(); }
  std::uint32_t find(const base::SocketAddress& address) const {
    const auto found = by_address_.find(address);
    return found == by_address_.end() ? kNone : found->second;
  }
  /// Whose connection it is.
  std::uint32_t at_connection(std::uint32_t slot) const noexcept { return by_connection_slot_[slot]; }

  explicit TransportPeers(std::uint32_t connections_max) : by_connection_slot_(connections_max, kNone) {}

  /// kNone if there is no memory.
  std::uint32_t add(const base::SocketAddress& address);
  void connect(std::uint32_t index, std::uint32_t connection_slot);
  /// Nothing comes over that connection any more. Whose it was.
  std::uint32_t disconnect(std::uint32_t connection_slot);
  /// The sender has taken back what it had begun; nothing if it had not.
  std::optional<link::Notice> end_arriving(std::uint32_t index);
  /// The peer is no more. Its address stays, for whoever reads of its end, and numbers go on: what names a message of
  /// it names none of the next.
  void forget(std::uint32_t index);

 private:
  std::vector<std::unique_ptr<TransportPeer>> peers_;  // never fewer
  std::vector<std::uint32_t> by_connection_slot_;
  std::unordered_map<base::SocketAddress, std::uint32_t, base::SocketAddressHash> by_address_;
};

}  // namespace fairlead::shm
