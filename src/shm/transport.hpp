#pragma once
// The shared-memory transport: messages to engines of the same host (shm/connections.hpp, docs/shm.md). It uses the
// same types as the link beside it, so a caller need not know which transport it uses: Outgoing, Delivery, Outcome,
// Notice and peer handles. Its own handles have slots from kFirstSlot on.
//
// The rings are lossless and ordered, so there are no ACKs and no retransmission timers. A message is complete when the
// peer's reader has passed it. Short messages overtake long ones, which go in chunks. A message that finds no room
// waits here until the peer has read on. A peer fails if it ends, or if for `give_up_after` it neither reads what waits
// for it nor continues a long message. Everything pending to and from it then ends.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/fifo.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "shm/connections.hpp"
#include "shm/counters.hpp"
#include "shm/outbox.hpp"
#include "shm/partings.hpp"
#include "shm/peer_poll.hpp"
#include "shm/search.hpp"
#include "shm/transport_options.hpp"
#include "shm/transport_peer.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {

class Transport {
 public:
  static constexpr std::uint32_t kFirstSlot = TransportPeers::kFirstSlot;
  static constexpr std::uint32_t kOfPairs = ~1U;  // as an owner: queue pairs
  static bool has(link::PeerHandle peer) noexcept { return peer.slot >= kFirstSlot; }

  Transport(std::unique_ptr<Connections> connections, const TransportOptions& options);

  /// Returns the handle of a peer that is open.
  std::optional<link::PeerHandle> find(const base::SocketAddress& address) const;
  /// Searches this host for the peer; a `connected` notice reports success. If is_forced, returns a handle at once.
  std::optional<link::PeerHandle> seek(const base::SocketAddress& address, base::Instant now);
  /// Does the same for a peer with an open network session. `key` belongs to that session and authenticates engines of
  /// different users (shm/proof.hpp).
  std::optional<link::PeerHandle> meet(const base::SocketAddress& address, const base::SipKey& key, base::Instant now);
  const base::SocketAddress& address(link::PeerHandle peer) const { return peers_[peer].address; }
  /// Returns false also if the slot belongs to another peer by now.
  bool is_open(link::PeerHandle handle) const {
    const Peer* const peer = peers_.find(handle);
    return peer != nullptr && peer->connection_slot != kNone;
  }
  /// Returns the connection to an open peer that shares memory with us; else null.
  Connection* mapped_peer(link::PeerHandle peer) {
    Connection* there = connection_of(peers_[peer]);
    const bool is_open = there != nullptr && there->state == Connection::State::open;
    return is_open && there->arena_bytes != 0 && !peers_[peer].is_parting ? there : nullptr;
  }
  /// The memory that a peer shares with us; no memory if none. It stays available just after the peer has ended.
  struct ArenaView {
    std::shared_ptr<Memory> memory;
    std::uint64_t bytes = 0;
    bool has_ended = false;  // the peer has given us up: what it had there for us may be overwritten
  };
  ArenaView arena_of(link::PeerHandle peer) {
    const Connection* there = connection_of(peers_[peer]);
    if (there == nullptr) return {};
    return {there->arena, there->arena_bytes, there->end_by_peer() == End::peer_cut};
  }
  /// Returns whether write() would succeed.
  bool has_room(link::PeerHandle peer);
  /// Returns the name by which the peer appears in our tables.
  std::uint64_t name_of(link::PeerHandle peer) const { return std::uint64_t{peers_[peer].connection_slot} + 1; }
  /// The search: why a peer is not reached this way, and who waits for meet().
  Search& search() { return search_; }
  const Search& search() const { return search_; }
  template <typename Visit>
  void for_each_peer(Visit&& visit) const {
    for (std::uint32_t index = 0; index < peers_.size(); ++index)
      if (const Peer& peer = peers_[index]; peer.connection_slot != kNone)
        visit(peer.address, std::as_const(*connections_).peer(peer.connection_slot));
  }

  /// Same as Link::submit() and Link::cancel().
  Status submit(link::PeerHandle peer, const link::Outgoing& message, base::Instant now,
                link::Reference* reference = nullptr);
  bool cancel(link::PeerHandle peer, link::Reference reference, std::uint64_t cookie);
  /// Writes a message without payload or outcome. Returns false if it cannot leave at once. The caller alerts the peer.
  bool write(link::PeerHandle peer, const wire::Envelope& envelope);
  /// As Link::send_short(), for messages of one piece, while no message waits and there is room: writes them at once.
  /// In transport_fast_path.hpp.
  inline std::size_t send_short(link::PeerHandle peer, const link::ShortSend& send, base::Instant now,
                                std::span<link::OperationHandle> names);
  /// Does the same for one message with a place in a sequence; its owner is kOfPairs. Returns false if nothing was
  /// sent.
  bool send_turn(link::PeerHandle peer, const wire::ShmHead& head, const wire::ShmOrdered& turn,
                 std::span<const std::byte> bytes, std::uint64_t cookie, base::Instant now);
  /// As Link::end_early(), also for messages of send_turn().
  std::optional<link::Outcome> end_early(std::uint32_t owner, const link::OperationHandle& name);
  /// While a record of the peer is being delivered: returns the ring line where the next record begins.
  std::uint64_t line_behind(link::PeerHandle peer);
  /// Ends our messages in the record that ends at this line, with the status that the peer reports: the peer did not
  /// accept them.
  void end_line(link::PeerHandle peer, std::uint64_t line, Status status);
  void set_target(link::PeerHandle peer, std::uint64_t target) { peers_[peer].arriving.target = target; }

  /// Begins a pass over the peers that may have news. Call next_peer() until it returns false, and for each peer first
  /// next_message(), then next_outcome() until it returns null.
  void begin_pass(base::Instant now);
  /// Handles arriving and leaving peers; makes system calls. Go on as after begin_pass(): the peers are those that are
  /// gone, and the messages those that they had written before.
  void attend(base::Instant now);
  bool next_peer();
  /// As the functions of PeerPoll. `has_room` says whether there is room for the event of a message: without it,
  /// messages stay in the rings for the next pass.
  const link::Delivery* next_message(bool has_room) {
    const link::Delivery* const message = poll_.next_message(has_room);
    if (message != nullptr && !message->is_last) [[unlikely]]
      make_busy(poll_.index(), now_);
    return message;
  }
  const link::Outcome* next_outcome(bool has_room) { return poll_.next_outcome(has_room); }
  /// Returns whether the pass has found anything. Known at its end.
  bool has_found() const noexcept { return has_found_; }
  /// Gives up on peers that stopped reading or were not found in time.
  void expire(base::Instant now);
  base::Instant next_deadline() const {
    return std::min({expire_at_, partings_.next_deadline(now_), connections_->next_deadline()});
  }
  std::optional<link::Outcome> next_outcome() { return outcomes_.take(); }
  /// Returns the next notice. Until the next call, the address of a peer that it reports as lost is known.
  std::optional<link::Notice> next_notice();
  bool has_news() const { return !outcomes_.empty() || !notices_.empty(); }

  /// Prepares for sleep: tells the peers how far we have read, and makes them ring from now on. Returns false if there
  /// is work already.
  bool arm();
  void tell_all();
  /// Tells the peers that this engine ends in an orderly way. Stops searching for peers.
  void take_leave();

  Partings& partings() { return partings_; }
  Connections& connections() { return *connections_; }
  const Connections& connections() const { return *connections_; }
  const TransportCounters& counters() const { return counters_; }
  bool is_forced() const { return options_.is_forced; }
  bool has_peers() const { return !peers_.empty(); }
  enum class Pendings : std::uint8_t { all, wanted };  // wanted: those that were not cancelled
  /// Returns whether such a message is left to send or has not been read. Slow.
  bool has_any(Pendings which) const;
  /// Checks all invariants, and ends the process if one is violated. Slow: for the simulator.
  void check();
  /// Returns how many messages of send_short() are not complete.
  std::uint64_t count_pending(std::uint32_t owner);

 private:
  using Peer = TransportPeer;
  static constexpr std::uint32_t kNone = TransportPeers::kNone;
  static constexpr std::size_t kManyEach = 128;  // bytes; longest message that shares a record with others
  static constexpr int kLastLooks = 128;         // polls of what a peer that is gone has left

  std::uint32_t add_peer(const base::SocketAddress& address);
  bool has_room_for(const ConnectionEvent& event);
  bool has_room_for_loss(const Peer& peer);
  void open(std::uint32_t connection_slot, base::Instant now);
  void lose(std::uint32_t index, Status status, base::Instant now, link::Diagnosis diagnosis = link::Diagnosis::none);
  void look_after(std::uint32_t index, base::Instant now);

  Connection* connection_of(const Peer& peer) {
    return peer.connection_slot == kNone ? nullptr : &connections_->peer(peer.connection_slot);
  }
  /// Returns an open peer that stays, and for which no message waits for room; else null.
  Peer* fast_peer(link::PeerHandle handle) {
    Peer* const peer = peers_.find(handle);
    const bool is_fast = peer != nullptr && peer->connection_slot != kNone && peer->shorts.empty();
    return is_fast && !peer->is_parting ? peer : nullptr;
  }
  void make_busy(std::uint32_t index, base::Instant now);
  std::uint32_t next_departing();
  void end_departure(const ConnectionEvent& ended);
  struct Run {
    std::size_t count = 0, bytes = 0;
  };
  static bool fits(const link::SendPart& part) {
    return part.memory.size() == 1 && part.length <= Outbox::kWholeMax && part.length <= part.memory[0].iov_len;
  }
  static Run next_run(std::span<const link::SendPart> parts);
  std::size_t write_shorts(std::uint32_t index, Connection& to, const link::ShortSend& send, std::size_t sent,
                           base::Instant now, std::span<link::OperationHandle> names);

  std::unique_ptr<Connections> connections_;
  TransportOptions options_;
  TransportCounters counters_;
  Search search_{*connections_, options_.is_forced};
  Outbox outbox_{*connections_, options_, counters_};
  TransportPeers peers_;
  std::vector<std::uint32_t> busy_;  // peers with pending messages, or with a message under way to us
  base::Instant now_{};              // time of the current pass or attend()
  base::Fifo<link::Outcome> outcomes_;
  base::Fifo<link::Notice> notices_;
  std::optional<link::PeerHandle> told_end_;  // of the last notice, if that was of an end
  Partings partings_{*connections_, peers_, search_, notices_, options_.is_forced};
  PeerPoll poll_{*connections_, peers_, outbox_, counters_, notices_};
  std::optional<ConnectionEvent> departing_;  // the end of a peer whose records are being read
  int last_looks_ = 0;                        // at what it has left
  bool is_attending_ = false, has_found_ = false;
  bool is_leaving_ = false;
  base::Instant expire_at_ = base::kNever;
};

/// Begins the poll of the next peer. Returns false if the pass is over.
inline bool Transport::next_peer() {
  has_found_ |= poll_.has_found();
  for (;;) {
    const std::uint32_t slot = is_attending_ ? next_departing() : connections_->watch().next();
    if (slot == kNone) break;
    const std::uint32_t index = peers_.at_connection(slot);
    if (index != kNone) [[likely]]
      return poll_.begin(index, slot, now_), true;
    poll_.abandon();
  }
  if (!is_attending_ && now_ >= expire_at_) [[unlikely]]
    expire(now_);
  return false;
}

}  // namespace fairlead::shm
