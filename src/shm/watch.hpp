#pragma once
// Which peers a pass looks at, and what it takes to sleep (docs/shm.md). The few busiest peers are watched: each pass
// looks at the place of their next record, and they need not ring. All others ring: they set a bit in our doorbell, of
// which a pass looks at one word. Before a thread sleeps nobody is watched any more.
//
// Peers can write to the doorbell and to the pages that we share with each of them. So what we decide here is kept
// here, and only told there.
//
// One thread may sleep, armed, while another polls. The poller takes rings and wake-ups that were meant for the
// sleeper, and may not be there for the next ones: so it rouses the sleeper, who then sees to it that somebody looks.

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
  /// `alarm`: an event fd of our own, shared with nobody.
  Watch(ConnectionTable& peers, Doorbell doorbell, base::FileDescriptor alarm, ConnectionCounters& counters)
      : peers_(peers), doorbell_(std::move(doorbell)), alarm_(std::move(alarm)), counters_(counters) {}

  const Doorbell& doorbell() const noexcept { return doorbell_; }

  /// Calls visit(slot) for each peer that is watched, and each that rang; those are watched from now on, if it pays.
  template <typename Visit>
  void look(Visit&& visit) {
    if (++looks_ % kIdleLooks == 0) [[unlikely]]
      unwatch_idle();
    for (std::uint32_t i = 0; i < watched_count_; ++i) visit(watched_[i]);
    if (!doorbell_.has_rung() && reminders_.empty()) [[likely]]
      return;
    rouse();
    const auto visit_ringing = [&](std::uint32_t slot) {
      if (slot >= peers_.size() || !peers_[slot].is_audible()) return;
      watch(slot);
      visit(slot);
    };
    std::swap(reminders_, reminders_taken_);  // what comes now is for the next pass
    for (const std::uint32_t slot : reminders_taken_) {
      is_reminded_[slot] = false;
      visit_ringing(slot);
    }
    reminders_taken_.clear();
    doorbell_.take(visit_ringing);
  }
  /// For one who polls in vain: looks for some ten nanoseconds whether the only watched peer has written. To come again
  /// would take longer.
  void glance() const noexcept {
    if (watched_count_ != 1) return;
    const RingReader& reader = peers_[watched_[0]].reader;
    for (int i = 0; i < kGlances && !reader.has_record(); ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  /// The peer has just written, or read what we wrote: it stays watched.
  void note_traffic(std::uint32_t slot) noexcept { last_traffic_[slot] = looks_; }
  /// Looks at the peer in the next pass, though it does not ring.
  void remind(std::uint32_t slot);
  /// The same of all who have news, as if they had rung: a peer can clear what others have set in our doorbell.
  void remind_of_news();
  /// Whether any peer is watched: then somebody has to keep looking.
  bool is_watching() const noexcept { return watched_count_ > 0; }
  template <typename Visit>
  void for_each_watched(Visit&& visit) {
    for (std::uint32_t i = 0; i < watched_count_; ++i) visit(watched_[i]);
  }
  /// A peer that is open from now on.
  void begin(std::uint32_t slot);
  /// So that begin() of this slot needs no memory.
  void make_room(std::uint32_t slot);
  /// The peer is no more.
  void forget(std::uint32_t slot) noexcept;

  /// Wakes whoever sleeps, armed, if anybody does.
  void rouse() noexcept;
  /// Readable for the sleeper when he is roused.
  int alarm_descriptor() const noexcept { return alarm_.get(); }

  /// Before sleeping: nobody is watched, whoever has news wakes us. False if there are news already.
  bool arm();
  /// Back from sleep, or about to look for a while.
  void disarm();

 private:
  static constexpr std::uint32_t kWatchedMax = 8;
  static constexpr int kGlances = 16;
  static constexpr std::uint64_t kBusyLooks = 4096;   // without traffic, before another may take the place
  static constexpr std::uint64_t kIdleLooks = 65536;  // without traffic, before it has to ring again

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
  std::vector<std::uint32_t> reminders_, reminders_taken_;  // slots to look at as if they had rung, each once
  std::vector<bool> is_reminded_;                           // by slot
  std::uint64_t looks_ = 0;
  bool is_armed_ = false, is_roused_ = false;
};

}  // namespace fairlead::shm
