#pragma once
// The transport: messages to engines of the same host, through shared memory (shm/connections.hpp, docs/shm.md). It
// takes and gives the same things as the link beside it, so that whoever sends or receives need not know which it was:
// Outgoing, Delivery, Outcome, Notice, and handles of peers (its own have slots from kFirstSlot on).
//
// The rings lose nothing and keep their order, so there are no ACKs and no timers: a message has had its way when the
// peer's reader has passed it. Short messages overtake long ones, which go in chunks; what finds no room waits here and
// goes when the peer has read on. A peer that ends, or for `give_up_after` neither reads what waits for it nor goes on
// with a long message that it has begun, ends everything pending to it and from it.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/fifo.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "link/send_part.hpp"
#include "shm/connections.hpp"
#include "shm/counters.hpp"
#include "shm/inbox.hpp"
#include "shm/outbox.hpp"
#include "shm/search.hpp"
#include "shm/transport_options.hpp"
#include "shm/transport_peer.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {

/// Short messages whose ends are told to the one who collects, by cookie and owner.
struct ShortSend {
  std::uint32_t source_port = 0, target_port = 0;
  std::uint32_t owner = 0;
  std::span<const link::SendPart> parts;  // each a message
};
/// The end of one.
struct ShortEnd {
  std::uint64_t cookie = 0;
  std::uint32_t owner = 0;
  std::uint32_t length = 0;
  Status status = Status::ok;
};

class Transport {
 public:
  static constexpr std::uint32_t kFirstSlot = TransportPeers::kFirstSlot;
  static constexpr std::uint32_t kOfPairs = ~1U;  // as an owner
  static bool has(link::PeerHandle peer) noexcept { return peer.slot >= kFirstSlot; }

  Transport(std::unique_ptr<Connections> connections, const TransportOptions& options);

  /// The way to a peer, if there is one.
  std::optional<link::PeerHandle> find(const base::SocketAddress& address) const;
  /// Looks whether a peer is on this host; a `connected` notice tells if so. If it is forced, its handle.
  std::optional<link::PeerHandle> seek(const base::SocketAddress& address, base::Instant now);
  /// The same of one whose session over the network is open: `key` is of that session, by which engines of different
  /// users know each other (shm/proof.hpp).
  std::optional<link::PeerHandle> meet(const base::SocketAddress& address, const base::SipKey& key, base::Instant now);
  const base::SocketAddress& address(link::PeerHandle peer) const { return peers_[peer].address; }
  bool is_open(link::PeerHandle peer) const { return peers_[peer].connection_slot != kNone; }
  /// A peer that shows us its memory; null if it does not, or is not open.
  Connection* mapped_peer(link::PeerHandle peer) {
    Connection* there = connection_of(peers_[peer]);
    return there != nullptr && there->arena_bytes != 0 && there->state == Connection::State::open ? there : nullptr;
  }
  /// What a peer shows us; no memory if nothing. Also of one that has just ended.
  struct ArenaView {
    std::shared_ptr<Memory> memory;
    std::uint64_t bytes = 0;
  };
  ArenaView arena_of(link::PeerHandle peer) {
    const Connection* there = connection_of(peers_[peer]);
    return there != nullptr ? ArenaView{there->arena, there->arena_bytes} : ArenaView{};
  }
  /// Whether write() would.
  bool has_room(link::PeerHandle peer);
  /// How a peer calls itself in our tables.
  std::uint64_t name_of(link::PeerHandle peer) const { return std::uint64_t{peers_[peer].connection_slot} + 1; }
  /// Why a peer is not reached this way, and who waits for meet().
  Search& search() { return search_; }
  const Search& search() const { return search_; }
  template <typename Visit>
  void for_each_peer(Visit&& visit) const {
    for (std::uint32_t index = 0; index < peers_.size(); ++index)
      if (const Peer& peer = peers_[index]; peer.connection_slot != kNone)
        visit(peer.address, std::as_const(*connections_).peer(peer.connection_slot));
  }

  /// As Link::submit() and Link::cancel().
  Status submit(link::PeerHandle peer, const link::Outgoing& message, base::Instant now,
                link::Reference* reference = nullptr);
  bool cancel(link::PeerHandle peer, link::Reference reference, std::uint64_t cookie);
  /// A message without payload or outcome, if it can leave at once; the caller alerts the peer.
  bool write(link::PeerHandle peer, const wire::Envelope& envelope);
  /// The fast path (transport_fast_path.hpp): short messages of one piece that nothing waits before are written at
  /// once, as far as there is room. How many; sent(index, number) tells of each its number among those to the peer.
  template <typename Sent>
  std::size_t send_now(link::PeerHandle peer, const ShortSend& send, base::Instant now, Sent&& sent);
  /// The same of one message that has its turn in a sequence; its owner is kOfPairs. False: nothing was sent.
  bool send_turn(link::PeerHandle peer, const wire::ShmHead& head, const wire::ShmOrdered& turn,
                 std::span<const std::byte> bytes, std::uint64_t cookie, base::Instant now);
  /// Ends such a message to peer `kFirstSlot + index`, by the low bits of its number: `canceled`, but it may still
  /// arrive; or `ok`: it has, and its end comes. None if that has come.
  std::optional<ShortEnd> end_early(std::uint32_t index, std::uint32_t owner, std::uint32_t number);
  /// While a record of the peer is being delivered: the line of its ring where the next one begins.
  std::uint64_t line_behind(link::PeerHandle peer);
  /// The peer says what became of the messages of ours that ended at that line of its ring: they have not been taken.
  void end_line(link::PeerHandle peer, std::uint64_t line, Status status);
  void set_target(link::PeerHandle peer, std::uint64_t target) { peers_[peer].arriving.target = target; }

  /// Both in transport_collect.hpp. Takes what has come: for each piece taker.inlined(peer, head, bytes), once for each
  /// message of a record of many, or taker.ordered(peer, head, turn, bytes), or where that says no or it is neither,
  /// taker.deliver(delivery); the bytes lie in memory that the peer shares and may still change. For each message of
  /// send_now() that the peer has passed, taker.ended(end). True if anything happened.
  template <typename Taker>
  bool collect(base::Instant now, Taker&& taker);
  /// System calls: who has come or gone. Deaths deliver what had been written before.
  template <typename Taker>
  bool attend(base::Instant now, Taker&& taker);
  /// Peers that stopped reading, or were not found in time.
  void expire(base::Instant now);
  base::Instant next_deadline() const { return std::min(expire_at_, connections_->next_deadline()); }
  std::optional<link::Outcome> next_outcome() { return outcomes_.take(); }
  std::optional<link::Notice> next_notice() { return notices_.take(); }
  /// The end of a message of send_now() whose peer is lost.
  std::optional<ShortEnd> next_lost() { return lost_.take(); }
  bool has_news() const { return !outcomes_.empty() || !notices_.empty() || !lost_.empty(); }

  /// Before sleeping: the peers know how far we have read, and ring from now on. False if there is something to do.
  bool arm();
  void tell_all();
  /// This engine ends: peers that notice it know that it is in order. Nobody is looked for any more.
  void take_leave();

  Connections& connections() { return *connections_; }
  const Connections& connections() const { return *connections_; }
  const TransportCounters& counters() const { return counters_; }
  bool is_forced() const { return options_.is_forced; }
  bool has_peers() const { return !peers_.empty(); }
  /// Nothing to send, no outcome awaited.
  bool is_quiet() const;
  /// Ends the process if anything contradicts itself. Looks at everything: for the simulator.
  void check();
  /// Messages of send_now() whose end has not been told.
  std::uint64_t count_pending(std::uint32_t owner);

 private:
  using Peer = TransportPeer;
  static constexpr std::uint32_t kNone = TransportPeers::kNone;
  static constexpr std::size_t kManyEach = 128;    // bytes of a message that shares a record with others ...
  static constexpr std::size_t kManyMax = 1000;    // ... and of such a record: then the next is begun, for the reader
  static constexpr int kRecordsInPass = 64;        // of one peer
  static constexpr std::uint64_t kUntoldMax = 31;  // lines passed
  static constexpr int kLastLooks = 128;           // at what a peer that is gone has left

  std::uint32_t add_peer(const base::SocketAddress& address);
  bool has_room_for(const ConnectionEvent& event);
  bool has_room_for_loss(const Peer& peer);
  void open(std::uint32_t connection_slot, base::Instant now);
  void lose(std::uint32_t index, Status status, base::Instant now, link::Diagnosis diagnosis = link::Diagnosis::none);
  void look_after(std::uint32_t index, base::Instant now);

  Connection* connection_of(const Peer& peer) {
    return peer.connection_slot == kNone ? nullptr : &connections_->peer(peer.connection_slot);
  }
  /// A peer that is open, and nothing waits for room in its ring; else null.
  Peer* fast_peer(link::PeerHandle handle) {
    Peer* const peer = peers_.find(handle);
    return peer != nullptr && peer->connection_slot != kNone && peer->shorts.empty() ? peer : nullptr;
  }
  std::byte* begin_fast(link::PeerHandle handle, std::size_t bytes, Peer*& peer);
  std::uint64_t end_fast(Peer& peer, std::size_t bytes, std::size_t payload);
  template <typename Taker>
  bool end_passed(Peer& peer, const Connection& to, Taker&& taker);
  void make_busy(std::uint32_t index, base::Instant now);
  template <typename Taker>
  bool serve_sender(Peer& peer, Connection& to, Taker&& taker);

  template <typename Taker>
  bool take(std::uint32_t connection_slot, Taker&& taker);
  template <typename Taker>
  bool take_record(std::uint32_t index, Connection& from, std::size_t& bytes, Taker&& taker);
  struct Run {
    std::size_t count = 0, bytes = 0;
  };
  static bool fits(const link::SendPart& part) {
    return part.memory.size() == 1 && part.length <= Outbox::kWholeMax && part.length <= part.memory[0].iov_len;
  }
  static Run next_run(std::span<const link::SendPart> parts);
  template <typename Taker>
  bool take_many(std::uint32_t index, std::span<const std::byte> body, wire::ShmHead head, Taker&& taker);

  std::unique_ptr<Connections> connections_;
  TransportOptions options_;
  TransportCounters counters_;
  Search search_{*connections_, options_.is_forced};
  Outbox outbox_{*connections_, options_, counters_};
  Inbox inbox_{counters_};
  TransportPeers peers_;
  std::vector<std::uint32_t> busy_;  // peers that something is pending to, or that have begun a message
  base::Instant now_{};              // of collect() and attend()
  base::Fifo<link::Outcome> outcomes_;
  base::Fifo<link::Notice> notices_;
  base::Fifo<ShortEnd> lost_;
  bool is_leaving_ = false;
  base::Instant expire_at_ = base::kNever;
};

}  // namespace fairlead::shm
