#pragma once
// What a thread does that polls without end and finds nothing. It polls on while no other thread wants the processor.
// If more threads poll than there are processors, each would use up its time slice before the one it waits for may run:
// so it yields. If a yield is expensive, because others compute, it sleeps until something arrives: the scheduler
// prefers a woken thread to them. A thread that computes between its polls is left alone.
//
// A row of polls precedes each yield. It is long while yields find nobody. After one that let another thread run it is
// short, because polls of a network cost as much as that thread needs for its work.
//
// A thread may find something at times, and yet not what it waits for: it asks again for a lock whose holder does not
// run. So many vain polls lead to a yield even if none of their rows was long. But such a thread does not sleep.

#include <concepts>
#include <cstdint>

#include "base/time.hpp"
#include "queue/wait_ladder.hpp"

namespace fairlead::queue {

/// For one thread, or under a lock.
class IdlePolls {
 public:
  using Step = WaitLadder::Step;

  /// WaitChoice::spin: yields, but never sleeps.
  explicit IdlePolls(WaitChoice choice = WaitChoice::polite) noexcept
      : ladder_(choice == WaitChoice::spin ? choice : WaitChoice::polite, base::Duration::zero()) {}

  /// Called after a poll found something.
  void found() noexcept { row_.polls = 0; }
  /// Called after a poll found nothing. Returns true now and then: next() then tells what to do. `now` is rarely
  /// called.
  template <std::invocable Clock>
  bool is_turn(Clock&& now) noexcept {
    const bool is_row_full = row_.add(now);
    return all_.add(now) || is_row_full;
  }
  Step next(base::Instant now) noexcept;
  /// Called after a yield.
  void yielded(base::Instant before, base::Instant after) noexcept;

  static constexpr std::uint32_t kInRow = 64, kInAll = 1024;
  // The thread that is polled for may need this processor.
  static constexpr std::uint32_t kInRowBesideOthers = 4;
  // a longer average means that the thread also does other work
  static constexpr base::Duration kPollMost = std::chrono::microseconds(10);
  static constexpr base::Duration kSleepMost = std::chrono::milliseconds(1);

 private:
  /// Polls that found nothing.
  struct Row {
    std::uint32_t most;
    std::uint32_t polls = 0;
    base::Instant timed_from{};  // when its second half began

    template <std::invocable Clock>
    bool add(Clock&& now) noexcept {
      if (++polls == most / 2) timed_from = now();
      return is_full();
    }
    bool is_full() const noexcept { return polls >= most; }
    bool is_busy(base::Instant now) const noexcept { return now - timed_from > (most - most / 2) * kPollMost; }
  };

  void set_rows(bool is_beside_others) noexcept;

  Row row_{kInRow};  // since something was found
  Row all_{kInAll};
  WaitLadder ladder_;
  WaitLadder::Wait wait_ = ladder_.begin({});
};

}  // namespace fairlead::queue
