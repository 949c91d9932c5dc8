#pragma once
// Selects the peers that a pass polls, and handles sleep (docs/shm.md). The few busiest peers are watched: each pass
// polls the place of their next record, and they need not ring. All other peers ring: they set a bit in our doorbell,
// of which a pass polls one word. No peer is watched while a thread sleeps.
//
// Peers can write to the doorbell and to the pages that we share with them. All decisions are therefore kept here, and
// only copied there.
//
// One thread may sleep, armed, while another polls. The poller takes rings and wake-ups meant for the sleeper, and may
// stop polling at any time. It therefore rouses the sleeper, which ensures that somebody polls.

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "shm/connection_table.hpp"
#include "shm/counters.hpp"
#include "shm/doorbell.hpp"

namespace fairlead::shm {

class Watch {
 public:
  /// `alarm` is an event fd that no other process has.
  Watch(ConnectionTable& peers, Doorbell doorbell, base::FileDescriptor alarm, ConnectionCounters& counters)
      : peers_(peers), doorbell_(std::move(doorbell)), alarm_(std::move(alarm)), counters_(counters) {}

  const Doorbell& doorbell() const noexcept { return doorbell_; }

  /// Begins a look at the peers: next() returns each watched one, then each that rang or that somebody reminded of,
  /// which becomes watched if that pays.
  void begin_look() {
    if (++looks_ % kIdleLooks == 0) [[unlikely]]
      unwatch_idle();
    place_ = 0;
  }
  /// Returns the slot of the next peer; kNone if there is none.
  std::uint32_t next() {
    if (place_ < watched_count_) return watched_[place_++];
    if (calling_.empty() && (place_ == kCalling || (reminders_.empty() && !doorbell_.has_rung()))) [[likely]]
      return kNone;
    return next_calling();
  }
  /// For a poller that found nothing: polls the only watched peer for some ten nanoseconds. Another full pass would
  /// take longer.
  void glance() const noexcept {
    if (watched_count_ != 1) return;
    const RingReader& reader = peers_[watched_[0]].reader;
    for (int i = 0; i < kGlances && !reader.has_record(); ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  /// Records traffic of the peer in either direction, so that it stays watched.
  void note_traffic(std::uint32_t slot) noexcept { last_traffic_[slot] = looks_; }
  /// Makes the next pass look at the peer, although it does not ring.
  void remind(std::uint32_t slot);
  /// Reminds of all peers with news, as if they had rung: a malicious peer can clear others' bits in our doorbell.
  void remind_of_news();
  /// Returns whether any peer is watched: then a thread must keep polling.
  bool is_watching() const noexcept { return watched_count_ > 0; }
  template <typename Visit>
  void for_each_watched(Visit&& visit) {
    for (std::uint32_t i = 0; i < watched_count_; ++i) visit(watched_[i]);
  }
  /// Adds a peer that has opened.
  void begin(std::uint32_t slot);
  /// Allocates what begin() of this slot needs.
  void make_room(std::uint32_t slot);
  /// Removes the peer.
  void forget(std::uint32_t slot) noexcept;

  /// Wakes the armed sleeper, if there is one.
  void rouse() noexcept;
  /// Readable when the sleeper is roused.
  int alarm_descriptor() const noexcept { return alarm_.get(); }

  /// Call before sleeping: stops watching all peers, so that each one rings. Returns false if there are news already.
  bool arm();
  /// Call after sleeping, or before a longer poll.
  void disarm();

 private:
  static constexpr std::uint32_t kNone = ConnectionTable::kNone;
  static constexpr std::uint32_t kWatchedMax = 8;
  static constexpr std::uint32_t kCalling = kNone;  // a place: the watched peers of this look are done
  static constexpr int kGlances = 16;
  static constexpr std::uint64_t kBusyLooks = 4096;   // looks without traffic, before another peer may take the place
  static constexpr std::uint64_t kIdleLooks = 65536;  // looks without traffic, before the peer must ring again

  std::uint32_t next_calling();
  void watch(std::uint32_t slot);
  void unwatch(std::uint32_t place);
  void unwatch_idle();
  void remind_if_news(std::uint32_t slot);

  ConnectionTable& peers_;
  Doorbell doorbell_;
  base::FileDescriptor alarm_;
  ConnectionCounters& counters_;
  std::vector<std::uint64_t> last_traffic_;  // by slot: number of the look
  std::array<std::uint32_t, kWatchedMax> watched_{};
  std::uint32_t watched_count_ = 0;
  std::uint32_t place_ = kCalling;        // of the next one in this look
  std::vector<std::uint32_t> reminders_;  // slots that the next look returns as if they had rung, each at most once
  std::vector<std::uint32_t> calling_;    // slots that rang or were reminders, and that this look still returns
  std::size_t called_ = 0;                // of them, returned already
  std::vector<bool> is_reminded_;         // by slot
  std::uint64_t looks_ = 0;
  bool is_armed_ = false, is_roused_ = false;
};

}  // namespace fairlead::shm
