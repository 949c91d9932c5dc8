#pragma once
// All engines of this host that this one talks to through shared memory: how they meet, part, and tell each other that
// there is news (docs/shm.md). What the bytes mean is the engine's affair.
//
// Looking. The few busiest peers are watched: each pass looks at the place of their next record, and they need not
// ring. All others ring: they set a bit in our doorbell, of which a pass looks at one word. Before a thread sleeps
// nobody is watched any more.
//
// Thread rule: one thread at a time (the engine's lock); descriptor() may be polled by another.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "path/shm_arena.hpp"
#include "path/shm_greeting.hpp"
#include "path/shm_identity.hpp"
#include "path/shm_peer.hpp"
#include "path/shm_sheets.hpp"

namespace fairlead::path {

struct ShmOptions {
  std::string directory{};                // of the sockets' names; empty: abstract names
  bool admits_all = false;                // also processes of other users
  std::uint32_t ring_bytes = 256 * 1024;  // one direction; a power of two, whole pages
  std::uint32_t peers_max = 1024;
  std::uint64_t arena_bytes = 0;  // shown to peers of our user; 0: nothing
  std::size_t arena_head_bytes = 0;
  std::uint64_t huge_max = 0;      // longest allocation in it that gets huge pages
  std::size_t identity_bytes = 0;  // of records for memory outside it, beside an arena; 0: such memory is not reached
};

/// What happened to a peer.
struct ShmEvent {
  enum class Kind : std::uint8_t { opened, ended, declined } kind = Kind::opened;
  std::uint32_t slot = 0;
  base::SocketAddress address;
  std::string reason;  // of ended and declined
};

struct ShmCounters {
  std::uint64_t opened = 0, ended = 0;
  std::uint64_t declined_user = 0;      // of a user that we do not admit
  std::uint64_t declined_greeting = 0;  // not of our protocol
  std::uint64_t declined_full = 0;      // more peers than peers_max
  std::uint64_t refused_record = 0;     // a peer whose shared memory made no sense
  std::uint64_t sleeps = 0, unwatched = 0;
  std::uint64_t arenas_seen = 0;                                   // peers whose memory we can reach
  std::uint64_t arenas_refused = 0;                                // not of our protocol, or no address space
  std::array<std::uint64_t, ForeignMemory::kDenials> processes{};  // of those, by why we cannot reach the rest of it
};

/// What we show of our memory. Lives as long as somebody uses some of it, also longer than the hub.
struct ShmShown {
  ShmShown(ShmArena made, std::uint64_t huge_max) : arena(std::move(made)), sheets(arena, huge_max) {}
  ShmArena arena;
  ShmSheets sheets;
};

/// Peers that were in our arena when something in it was withdrawn.
struct ShmVisitor {
  std::uint32_t slot = 0, generation = 0;
  std::uint64_t visit = 0;
};

class ShmHub {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  static Result<std::unique_ptr<ShmHub>> open(const base::SocketAddress& own, std::uint64_t epoch,
                                              const ShmOptions& options);
  ~ShmHub();
  ShmHub(const ShmHub&) = delete;
  ShmHub& operator=(const ShmHub&) = delete;

  /// The slot of the peer at an address if it is open, or being opened.
  std::uint32_t find(const base::SocketAddress& address) const;
  /// Begins to open a peer; its slot, or why it cannot be. An event tells of the end of it.
  Result<std::uint32_t> ask(const base::SocketAddress& address);
  ShmPeer& peer(std::uint32_t slot) { return *peers_[slot]; }
  const ShmPeer& peer(std::uint32_t slot) const { return *peers_[slot]; }
  std::uint32_t peer_count() const { return static_cast<std::uint32_t>(peers_.size()); }

  /// System calls: greetings and deaths. Then next_event() until there is none.
  void attend();
  std::optional<ShmEvent> next_event();
  /// Ends a peer, with an event.
  void end(std::uint32_t slot, std::string_view reason);
  /// The same, because its memory made no sense.
  void refuse(std::uint32_t slot, std::string_view reason);
  /// After the `ended` event, when nothing refers to it any more.
  void forget(std::uint32_t slot);

  /// Calls visit(slot) for each peer that is watched, and each that rang; those are watched from now on, if it pays.
  template <typename Visit>
  void look(Visit&& visit) {
    if (++looks_ % kIdleLooks == 0) [[unlikely]]
      unwatch_idle();
    for (std::uint32_t i = 0; i < watched_count_; ++i) visit(watched_[i]);
    if (!bell_.has_rung()) [[likely]]
      return;
    bell_.take([&](std::uint32_t slot) {
      if (slot >= peers_.size() || !is_audible(*peers_[slot])) return;
      watch(slot);
      visit(slot);
    });
  }
  /// For one who polls in vain: looks for some ten nanoseconds whether the only watched peer has written. To come again
  /// would take longer.
  void glance() const noexcept {
    if (watched_count_ != 1) return;
    const RingReader& reader = peers_[watched_[0]]->reader;
    for (int i = 0; i < kGlances && !reader.has_record(); ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  /// The peer has just written, or read what we wrote: it stays watched.
  void note_traffic(std::uint32_t slot) noexcept { last_traffic_[slot] = looks_; }
  /// Looks at the peer in the next pass, though it does not ring.
  void remind(std::uint32_t slot) noexcept { bell_.ring(slot); }
  /// Whether any peer is watched: then somebody has to keep looking.
  bool is_watching() const noexcept { return watched_count_ > 0; }

  template <typename Visit>
  void for_each_watched(Visit&& visit) {
    for (std::uint32_t i = 0; i < watched_count_; ++i) visit(*peers_[watched_[i]]);
  }

  /// Before sleeping on descriptor(): nobody is watched, whoever has news wakes us. False if there are news already.
  bool arm();
  /// Back from sleep, or about to look for a while.
  void disarm();
  bool is_armed() const noexcept { return is_armed_; }
  /// Readable when attend() has something to do, or when a peer has rung an armed bell.
  int descriptor() const noexcept { return epoll_.get(); }

  /// What we show to peers; null if nothing.
  ShmArena* arena() noexcept { return shown_ ? &shown_->arena : nullptr; }
  /// Applications' memory in it; there if arena() is.
  ShmSheets& sheets() noexcept { return shown_->sheets; }
  const std::shared_ptr<ShmShown>& shown() const noexcept { return shown_; }
  /// Who may not have seen yet what was withdrawn from the tables of the arena just now. Takes microseconds.
  std::vector<ShmVisitor> visitors() const;
  /// Whether that peer has left since, or is no more.
  bool has_left(const ShmVisitor& visitor) const;
  /// Whether the peer that we told to set this bit in our doorbell may still be there.
  bool may_live(std::uint32_t bell_bit) const {
    return bell_bit < peers_.size() && peers_[bell_bit]->state != ShmPeer::State::closed;
  }
  /// Memory for records that only we can write; null if peers do not reach us but in the arena.
  std::byte* records() const noexcept { return identity_ ? identity_->records() : nullptr; }
  /// Whether a peer is at what it calls so, outside the arena. After it was withdrawn from the records.
  bool is_held(std::uint64_t name) const noexcept;

  /// How many peers are no more.
  std::uint64_t closings() const noexcept { return closings_; }

  const ShmCounters& counters() const noexcept { return counters_; }

 private:
  static constexpr std::uint32_t kWatchedMax = 8;
  static constexpr int kGlances = 16;
  static constexpr std::uint64_t kBusyLooks = 4096;   // without traffic, before another may take the place
  static constexpr std::uint64_t kIdleLooks = 65536;  // without traffic, before it has to ring again

  ShmHub(const base::SocketAddress& own, std::uint64_t epoch, const ShmOptions& options)
      : own_(own), epoch_(epoch), options_(options) {}

  static bool is_audible(const ShmPeer& peer) {
    return peer.state == ShmPeer::State::open || peer.state == ShmPeer::State::ended;
  }
  static const ShmSide* visitor_of(const ShmPeer& peer);
  ShmMemory::Layout pair_layout() const { return {4096, options_.ring_bytes, 2}; }
  std::uint32_t make_peer(ShmSocket socket);
  bool register_socket(int descriptor, std::uint64_t name) const;
  void accept_all();
  void serve(std::uint32_t slot);
  void take_greeting(std::uint32_t slot, ShmLetter& letter, std::span<const std::byte> bytes);
  void take_answer(std::uint32_t slot, ShmLetter& letter, std::span<const std::byte> bytes);
  void become_open(std::uint32_t slot);
  void close(std::uint32_t slot);
  void decline(std::uint32_t slot, std::string_view reason);
  bool is_admitted(const ShmSocket& socket) const;
  bool shows_to(const ShmSocket& socket) const;
  void introduce(ShmGreeting& greeting) const;
  void adopt_arena(ShmPeer& peer, base::FileDescriptor file, const ShmGreeting& greeting);
  bool is_at(const ShmSocket& socket, const base::SocketAddress& claimed) const;
  bool gives_way(std::uint32_t slot, const ShmGreeting& greeting);
  void watch(std::uint32_t slot);
  void unwatch(std::uint32_t place);
  void unwatch_idle();
  bool ring_if_news(std::uint32_t slot);

  base::SocketAddress own_;
  std::uint64_t epoch_;
  ShmOptions options_;
  bool has_barriers_ = false;
  ShmSocket listener_;
  base::FileDescriptor epoll_;
  std::shared_ptr<ShmShown> shown_;
  std::optional<ShmIdentity> identity_;
  ShmBell bell_;
  std::vector<std::unique_ptr<ShmPeer>> peers_;
  std::vector<std::uint64_t> last_traffic_;  // by slot: number of the look
  std::unordered_map<base::SocketAddress, std::uint32_t, base::SocketAddressHash> by_address_;
  std::deque<ShmEvent> events_;
  std::array<std::uint32_t, kWatchedMax> watched_{};
  std::uint32_t watched_count_ = 0;
  std::uint64_t looks_ = 0;
  std::uint64_t closings_ = 0;
  bool is_armed_ = false;
  ShmCounters counters_;
};

}  // namespace fairlead::path
