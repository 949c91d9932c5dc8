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
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fifo.hpp"
#include "base/time.hpp"
#include "link/link.hpp"
#include "link/send_part.hpp"
#include "shm/connections.hpp"
#include "shm/counters.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {

struct TransportOptions {
  bool is_forced = false;                    // there is no other way: messages wait until the peer is found
  base::Duration give_up_after{};            // without progress of a peer that something is pending to, or from
  base::Duration connect_within{};           // of a peer that is not there, if is_forced
  std::size_t copied_max = 768;              // longest message that is copied at submission, at most kBlockBytes
  std::size_t waiting_max = 65536;           // messages that wait for room, of one peer
  std::uint64_t pull_min = 0, pull_max = 0;  // messages that lie in our arena and are read there, not sent
};

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
  static constexpr std::uint32_t kFirstSlot = 1U << 20;
  static constexpr std::uint32_t kOfFlows = ~1U;  // as an owner
  static bool has(link::PeerHandle peer) noexcept { return peer.slot >= kFirstSlot; }

  Transport(std::unique_ptr<Connections> connections, const TransportOptions& options);

  /// The way to a peer, if there is one.
  std::optional<link::PeerHandle> find(const base::SocketAddress& address) const;
  /// Looks whether a peer is on this host; a `connected` notice tells if so. If it is forced, its handle.
  std::optional<link::PeerHandle> seek(const base::SocketAddress& address, base::Instant now);
  /// The same of one whose session over the network is open: `key` is of that session, by which engines of different
  /// users know each other (shm/proof.hpp).
  std::optional<link::PeerHandle> meet(const base::SocketAddress& address, const base::SipKey& key, base::Instant now);
  /// The address of somebody of another user who waits for meet(); and of one whom we want to meet, if it is forced.
  std::optional<base::SocketAddress> next_claim() { return claims_.take(); }
  std::optional<base::SocketAddress> next_wanted() { return wanted_.take(); }
  const base::SocketAddress& address(link::PeerHandle peer) const { return peers_[peer.slot - kFirstSlot]->address; }
  bool is_open(link::PeerHandle peer) const { return peers_[peer.slot - kFirstSlot]->connection_slot != kNone; }
  /// A peer that shows us its memory; null if it does not, or is not open.
  Connection* mapped_peer(link::PeerHandle peer) {
    Connection* there = connection_of(*peers_[peer.slot - kFirstSlot]);
    return there != nullptr && there->arena_bytes != 0 && there->state == Connection::State::open ? there : nullptr;
  }
  /// What a peer shows us; no memory if nothing. Also of one that has just ended.
  struct ArenaView {
    std::shared_ptr<Memory> memory;
    std::uint64_t bytes = 0;
  };
  ArenaView arena_of(link::PeerHandle peer) {
    const Connection* there = connection_of(*peers_[peer.slot - kFirstSlot]);
    return there != nullptr ? ArenaView{there->arena, there->arena_bytes} : ArenaView{};
  }
  /// Whether a message without payload leaves at once.
  bool has_room(link::PeerHandle peer);
  /// How a peer calls itself in our tables.
  std::uint64_t name_of(link::PeerHandle peer) const {
    return std::uint64_t{peers_[peer.slot - kFirstSlot]->connection_slot} + 1;
  }
  /// Why a peer is not reached this way; empty if nothing is known.
  std::string reason(const base::SocketAddress& address) const;
  template <typename Visit>
  void for_each_peer(Visit&& visit) const {
    for (const auto& peer : peers_)
      if (peer->connection_slot != kNone)
        visit(peer->address, std::as_const(*connections_).peer(peer->connection_slot));
  }

  /// As Link::submit() and Link::cancel().
  Status submit(link::PeerHandle peer, const link::Outgoing& message, base::Instant now);
  bool cancel(link::PeerHandle peer, std::uint64_t cookie);
  /// The straight line (lane_straight.hpp): short messages of one piece that nothing waits before are written at once,
  /// as far as there is room. How many; sent(index, number) tells of each its number in the peer's ring.
  template <typename Sent>
  std::size_t send_now(link::PeerHandle peer, const ShortSend& send, base::Instant now, Sent&& sent);
  /// The same of one message that has its turn in a sequence; its owner is kOfFlows. False: nothing was sent.
  bool send_turn(link::PeerHandle peer, const wire::ShmHead& head, const wire::ShmOrdered& turn,
                 std::span<const std::byte> bytes, std::uint64_t cookie, base::Instant now);
  /// Whether such a message to peer `kFirstSlot + index`, by the low bits of its number, has not been passed yet.
  bool is_on_its_way(std::uint32_t index, std::uint32_t number);
  void set_target(link::PeerHandle peer, std::uint64_t target) {
    peers_[peer.slot - kFirstSlot]->arriving.target = target;
  }

  /// Both in lane_collect.hpp. Takes what has come: for each piece taker.brief(peer, head, bytes), once for each
  /// message of a record of many, or taker.turn(peer, head, turn, bytes), or where that says no or it is neither,
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
  bool has_peers() const { return !by_address_.empty(); }
  /// Nothing to send, no outcome awaited.
  bool is_quiet() const;
  /// Ends the process if anything contradicts itself. Looks at everything: for the simulator.
  void check();
  /// Messages of send_now() whose end has not been told.
  std::uint64_t count_pending(std::uint32_t owner);

 private:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr std::size_t kBlockBytes = 1024;
  static constexpr std::size_t kWholeMax = std::size_t{8} * 1024;   // longer ones go in chunks
  static constexpr std::size_t kChunkMax = std::size_t{16} * 1024;  // so that the reader copies while we do
  static constexpr std::size_t kManyEach = 128;  // bytes of a message that shares a record with others ...
  static constexpr std::size_t kManyMax = 1000;  // ... and of such a record: then the next is begun, for the reader
  static constexpr int kRecordsInPass = 64;      // of one peer
  static constexpr int kShortsInTurn = 16;       // before a chunk has its turn
  static constexpr std::size_t kReasonsMax = 1024;
  static constexpr std::uint64_t kUntoldMax = 31;  // lines passed
  static constexpr int kLastLooks = 128;           // at what a peer that is gone has left

  struct Waiting {
    link::Outgoing message;
    std::byte* copy = nullptr;  // of a short message; a block
  };
  struct Pending {
    std::uint64_t line = 0;  // when the reader has passed it ...
    std::uint64_t cookie = 0;
    std::uint32_t owner = kNone;  // none: an outcome of submit()
    std::uint32_t length = 0;
    /// Word by word, in its place: a copy of what was just written would wait for it.
    void set(std::uint64_t at_line, std::uint64_t its_cookie, std::uint32_t its_owner, std::size_t bytes) {
      line = at_line;
      cookie = its_cookie;
      owner = its_owner;
      length = static_cast<std::uint32_t>(bytes);
    }
  };
  struct Arriving {
    bool is_under_way = false;
    wire::Envelope envelope;
    std::uint64_t size = 0, done = 0, target = 0;
    std::uint64_t done_seen = 0;  // at the last look
    base::Instant moved_at{};
  };
  struct Peer {
    base::SocketAddress address;
    std::uint32_t generation = 1;
    std::uint32_t connection_slot = kNone;
    bool is_used = false;
    bool is_busy = false;             // in busy_
    bool has_stopped = false;         // and is ended for that
    std::optional<base::SipKey> key;  // of its session over the network
    base::Fifo<Waiting> shorts, longs;
    base::Fifo<Pending> pending;
    std::uint64_t long_sent = 0;  // bytes of the first long message
    std::size_t long_piece = 0;   // where its next byte is
    std::size_t long_offset = 0;
    Arriving arriving;
    std::uint64_t passed_seen = 0;
    base::Instant moved_at{};
    base::Instant seek_until{}, seek_next{};
    bool is_idle() const { return shorts.empty() && longs.empty() && pending.empty(); }
    bool is_awaited() const { return !is_idle() || arriving.is_under_way; }
  };

  std::uint32_t make_peer(const base::SocketAddress& address);
  link::PeerHandle handle_of(std::uint32_t index) const { return {kFirstSlot + index, peers_[index]->generation}; }
  void open(std::uint32_t connection_slot, base::Instant now);
  void lose(std::uint32_t index, Status status, base::Instant now, link::Diagnosis diagnosis = link::Diagnosis::none);
  void remember_reason(const base::SocketAddress& address, const std::string& reason);
  void ask(const base::SocketAddress& address, const std::optional<base::SipKey>& key, base::Instant now);
  void look_after(std::uint32_t index, base::Instant now);
  void give_up(Peer& peer, std::string_view reason);

  Connection* connection_of(const Peer& peer) {
    return peer.connection_slot == kNone ? nullptr : &connections_->peer(peer.connection_slot);
  }
  /// A peer that is open, and nothing waits for room in its ring; else null.
  Peer* fast_peer(link::PeerHandle handle) {
    const std::uint32_t index = handle.slot - kFirstSlot;
    if (index >= peers_.size()) [[unlikely]]
      return nullptr;
    Peer& peer = *peers_[index];
    const bool is_straight =
        peer.generation == handle.generation && peer.connection_slot != kNone && peer.shorts.empty();
    return is_straight ? &peer : nullptr;
  }
  std::byte* begin_fast(link::PeerHandle handle, std::size_t bytes, Peer*& peer);
  std::uint64_t end_fast(Peer& peer, std::size_t bytes, std::size_t payload);
  bool write_short(Peer& peer, Connection& to, const link::Outgoing& message, const std::byte* copy);
  bool write_place(Peer& peer, Connection& to);
  bool write_chunk(Peer& peer, Connection& to);
  void gather_chunk(Peer& peer, std::byte* out, std::size_t bytes);
  bool pump(Peer& peer, Connection& to);
  template <typename Taker>
  bool end_passed(Peer& peer, const Connection& to, Taker&& taker);
  Status wait_for_room(Peer& peer, const link::Outgoing& message);
  void make_busy(std::uint32_t index, base::Instant now);
  std::byte* copy_block(const link::Outgoing& message);
  void release(const Waiting& waiting) {
    if (waiting.copy != nullptr) free_blocks_.push_back(waiting.copy);
  }
  template <typename Taker>
  bool serve_sender(Peer& peer, Connection& to, Taker&& taker);
  void refuse_reader(std::uint32_t connection_slot);

  template <typename Taker>
  bool take(std::uint32_t connection_slot, Taker&& taker);
  template <typename Taker>
  bool take_record(std::uint32_t index, Connection& from, std::size_t& bytes, Taker&& taker);
  bool find_payload(const Connection& from);
  struct Run {
    std::size_t count = 0, bytes = 0;
  };
  static bool is_straight(const link::SendPart& part) {
    return part.memory.size() == 1 && part.length <= kWholeMax && part.length <= part.memory[0].iov_len;
  }
  static Run next_run(std::span<const link::SendPart> parts);
  template <typename Taker>
  bool take_many(std::uint32_t index, std::span<const std::byte> body, wire::ShmHead head, Taker&& taker);
  void deliver_whole(link::PeerHandle from, std::span<const std::byte> bytes);
  bool read_record(std::uint32_t index, const RingReader::Record& record);
  bool read_part(std::uint32_t index, const RingReader::Record& record);

  std::unique_ptr<Connections> connections_;
  TransportOptions options_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by slot; never fewer
  std::vector<std::uint32_t> by_connection_slot_;
  std::unordered_map<base::SocketAddress, std::uint32_t, base::SocketAddressHash> by_address_;
  std::unordered_map<base::SocketAddress, std::string, base::SocketAddressHash> reasons_;
  std::vector<std::uint32_t> busy_;  // peers that something is pending to, or that have begun a message
  base::Instant now_{};              // of collect() and attend()
  base::Fifo<link::Outcome> outcomes_;
  base::Fifo<link::Notice> notices_;
  base::Fifo<ShortEnd> lost_;
  base::Fifo<base::SocketAddress> claims_, wanted_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::vector<std::byte*> free_blocks_;
  wire::ShmRecord record_;
  link::Delivery delivery_;
  bool is_leaving_ = false;
  base::Instant expire_at_ = base::kNever;
  TransportCounters counters_;
};

}  // namespace fairlead::shm
