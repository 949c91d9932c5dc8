#pragma once
// What a thread does that polls without end and finds nothing. As long as nobody else wants the processor, it polls on.
// Where more threads poll than there are processors, each would use up its time slice before the one that it waits for
// may run: so it yields. Where a yield is dear, because others compute, it sleeps until something arrives, for whoever
// is woken is preferred to them. A thread that computes between its polls is left alone.

#include <cstdint>

#include "base/time.hpp"
#include "queue/wait_ladder.hpp"

namespace fairlead::queue {

/// Of one thread, or under a lock.
class IdlePolls {
 public:
  using Step = WaitLadder::Step;

  /// WaitChoice::spin: it yields, and never sleeps.
  explicit IdlePolls(WaitChoice choice = WaitChoice::polite) noexcept
      : ladder_(choice == WaitChoice::spin ? choice : WaitChoice::polite, base::Duration::zero()) {}

  /// A poll found something.
  void found() noexcept { in_row_ = 0; }
  /// A poll found nothing. True, seldom: next() says what to do about it.
  bool is_turn() noexcept { return ++in_row_ % kInRow == 0; }
  Step next(base::Instant now) noexcept;
  /// After a yield.
  void yielded(base::Instant before, base::Instant after) noexcept { ladder_.yielded(wait_, before, after); }

  static constexpr std::uint32_t kInRow = 64;
  static constexpr base::Duration kPollMost = std::chrono::microseconds(3);  // one that takes longer has company
  static constexpr base::Duration kSleepMost = std::chrono::milliseconds(1);

 private:
  std::uint32_t in_row_ = 0;
  WaitLadder ladder_;
  WaitLadder::Wait wait_ = ladder_.begin({});
  base::Instant asked_at_{};
};

}  // namespace fairlead::queue
