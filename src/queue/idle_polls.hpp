#pragma once
// What a thread does that polls without end and finds nothing. It polls on while no other thread wants the processor.
// If more threads poll than there are processors, each would use up its time slice before the one it waits for may run:
// so it yields. If a yield is expensive, because others compute, it sleeps until something arrives: the scheduler
// prefers a woken thread to them. A thread that computes between its polls is left alone.

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
  void found() noexcept { in_row_ = 0; }
  /// Called after a poll found nothing. Returns true now and then: next() then tells what to do. `now` is rarely
  /// called.
  template <std::invocable Clock>
  bool is_turn(Clock&& now) noexcept {
    if (++in_row_ == row_ / 2) timed_from_ = now();
    return in_row_ >= row_;
  }
  Step next(base::Instant now) noexcept;
  /// Called after a yield.
  void yielded(base::Instant before, base::Instant after) noexcept { ladder_.yielded(wait_, before, after); }

  static constexpr std::uint32_t kInRow = 64;
  // While others compute, the thread that is polled for may need this processor.
  static constexpr std::uint32_t kInRowBesideOthers = 4;
  // a longer average means that the thread also does other work
  static constexpr base::Duration kPollMost = std::chrono::microseconds(3);
  static constexpr base::Duration kSleepMost = std::chrono::milliseconds(1);

 private:
  std::uint32_t in_row_ = 0, row_ = kInRow;
  WaitLadder ladder_;
  WaitLadder::Wait wait_ = ladder_.begin({});
  base::Instant timed_from_{};  // when the second half of the row began
};

}  // namespace fairlead::queue
