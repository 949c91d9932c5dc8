#pragma once
// The transport's state of each peer, and all peers by slot and address. A reused slot gets a new generation.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
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

/// The copy of a short message.
using Block = std::array<std::byte, 1024>;

/// A message that found no room in the ring.
struct Waiting {
  link::Outgoing message;
  Block* copy = nullptr;  // copy of a short message
  bool is_void = false;   // taken back; its completion has been reported
};
/// A message that the peer's reader has not passed yet.
struct Pending {
  static constexpr std::uint32_t kNobody = link::Outcome::kNobody;
  static constexpr std::uint32_t kNoTicket = ~0U;  // in place of a ticket: already completed

  std::uint64_t line = 0;  // complete when the reader has passed this line
  std::uint64_t cookie = 0;
  std::uint32_t owner = kNobody;  // kNobody: an outcome of submit()
  std::uint32_t length = 0;       // for outcomes: the ticket of a message by reference, 0 if none
  /// Assigns each member in place: copying a struct that was just written would stall on store forwarding.
  void set(std::uint64_t at_line, std::uint64_t its_cookie, std::uint32_t its_owner, std::size_t bytes) {
    line = at_line;
    cookie = its_cookie;
    owner = its_owner;
    length = static_cast<std::uint32_t>(bytes);
  }
};
/// How much of a scattered message has been copied.
struct GatherPosition {
  std::uint64_t bytes = 0;
  std::size_t piece = 0, offset = 0;  // position of the next byte

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

/// A long message that is arriving from a peer in chunks.
struct Arriving {
  bool is_under_way = false;
  wire::Envelope envelope;
  std::uint64_t size = 0, done = 0, target = 0;
  std::uint64_t done_seen = 0;  // at the last look
  base::Instant moved_at{};
};
/// A short message needs the first cache line and nothing else: a sender with many peers finds each in the second-level
/// cache at best.
struct alignas(64) TransportPeer {
  std::uint32_t generation = 1;
  std::uint32_t connection_slot = ConnectionTable::kNone;
  bool is_used = false;
  bool is_busy = false;        // listed in busy_
  bool has_stopped = false;    // it made no progress, and is ended for that
  bool is_parting = false;     // nothing new begins here; it is reached over the network
  bool was_asked = false;      // it wants to part, not we
  bool has_asked = false;      // we have told it that we want to part
  bool has_said_done = false;  // and that nothing of ours is under way any more
  bool is_done = false;        // it has said so
  base::Fifo<Pending> pending;
  base::Fifo<Waiting> shorts;  // the line ends behind what shorts.empty() reads

  base::Fifo<Waiting> longs;
  bool is_end_untold = false;  // forgotten, and the notice of its end has not been taken
  base::SocketAddress address;
  std::optional<base::SipKey> key;   // of its network session
  std::unique_ptr<Tickets> tickets;  // created with the first ticket
  GatherPosition long_sent;          // progress of the first long message
  Arriving arriving;
  std::uint64_t passed_seen = 0;
  base::Instant moved_at{};
  base::Instant seek_until{}, seek_next{};
  bool is_idle() const { return shorts.empty() && longs.empty() && pending.empty(); }
  /// Returns whether a message waits or is pending that was not cancelled.
  bool is_owing() const;
  /// Returns whether the pending message has completed already: taken back or refused.
  bool has_ended(const Pending& one) const {
    return one.length == Pending::kNoTicket || (one.length != 0 && !tickets->is_good(one.length));
  }
  /// Ends the ticket of a message that the peer has passed. Returns false if the message had completed before.
  bool end_ticket(const Pending& one, Tickets::Words& words) {
    return one.length != Pending::kNoTicket && tickets->end(words, one.length);
  }
  /// Nobody waits any more for a message that was written to the ring, as its number says. Returns false if it has
  /// completed.
  bool give_up_pending(std::size_t number, std::uint64_t cookie);
  bool is_awaited() const { return !is_idle() || arriving.is_under_way; }
};

class TransportPeers {
 public:
  static constexpr std::uint32_t kFirstSlot = 1U << 20;  // of handles; smaller slots belong to the link
  static constexpr std::uint32_t kNone = ~0U;

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(peers_.size()); }
  TransportPeer& operator[](std::uint32_t index) { return *peers_[index]; }
  const TransportPeer& operator[](std::uint32_t index) const { return *peers_[index]; }
  TransportPeer& operator[](link::PeerHandle handle) { return *peers_[handle.slot - kFirstSlot]; }
  const TransportPeer& operator[](link::PeerHandle handle) const { return *peers_[handle.slot - kFirstSlot]; }
  /// Returns null if the slot belongs to another peer by now.
  TransportPeer* find(link::PeerHandle handle) { return const_cast<TransportPeer*>(std::as_const(*this).find(handle)); }
  const TransportPeer* find(link::PeerHandle handle) const {
    const std::uint32_t index = handle.slot - kFirstSlot;
    if (index >= peers_.size()) [[unlikely]]
      return nullptr;
    const TransportPeer& peer = *peers_[index];
    return peer.generation == handle.generation ? &peer : nullptr;
  }
  link::PeerHandle handle_of(std::uint32_t index) const { return {kFirstSlot + index, peers_[index]->generation}; }
  /// Returns whether no peers are known, reached or not.
  bool empty() const noexcept { return by_address_.empty(); }
  std::uint32_t find(const base::SocketAddress& address) const {
    const auto found = by_address_.find(address);
    return found == by_address_.end() ? kNone : found->second;
  }
  /// Returns the peer of this connection slot.
  std::uint32_t at_connection(std::uint32_t slot) const noexcept { return by_connection_slot_[slot]; }

  explicit TransportPeers(std::uint32_t connections_max) : by_connection_slot_(connections_max, kNone) {}

  /// Returns kNone if memory is short.
  std::uint32_t add(const base::SocketAddress& address);
  void connect(std::uint32_t index, std::uint32_t connection_slot);
  /// Detaches the connection, over which nothing comes any more. Returns its peer.
  std::uint32_t disconnect(std::uint32_t connection_slot);
  /// Ends the arriving message, because the sender took it back. Returns nullopt if none was under way.
  std::optional<link::Notice> end_arriving(std::uint32_t index);
  /// Forgets the peer, whose end a notice reports. Its address stays for readers of the notice, and the slot goes to no
  /// other peer before release(). Numbers continue, so that a message name of this peer never names one of its
  /// successor.
  void forget(std::uint32_t index);
  void release(link::PeerHandle handle) { peers_[handle.slot - kFirstSlot]->is_end_untold = false; }

 private:
  std::vector<std::unique_ptr<TransportPeer>> peers_;  // never shrinks
  std::vector<std::uint32_t> by_connection_slot_;
  std::unordered_map<base::SocketAddress, std::uint32_t, base::SocketAddressHash> by_address_;
};

}  // namespace fairlead::shm
