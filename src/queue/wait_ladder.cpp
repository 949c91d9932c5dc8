#include "queue/wait_ladder.hpp"

#include <time.h>

#include <algorithm>

namespace fairlead::queue {
namespace {

std::int64_t count_of(base::Instant at) {
  return at.time_since_epoch().count();
}

}  // namespace

WaitLadder::Wait WaitLadder::begin(base::Instant now) const noexcept {
  const base::Duration budget(budget_.load(std::memory_order_relaxed));
  Wait wait{.began = now, .yield_at = now + base::Duration(gap_.load(std::memory_order_relaxed))};
  switch (choice_) {
    case WaitChoice::spin:
    case WaitChoice::polite:
      wait.spin_until = base::kNever;
      break;
    case WaitChoice::sleep:
      wait.spin_until = now;
      break;
    case WaitChoice::adaptive:
      wait.spin_until = count_of(now) < rests_until_.load(std::memory_order_relaxed) ? now : now + budget;
      break;
  }
  return wait;
}

WaitLadder::Step WaitLadder::next(const Wait& wait, base::Instant now) const noexcept {
  if (now >= wait.spin_until) return Step::sleep;
  if (now < wait.yield_at) return Step::look;
  if (count_of(now) < rests_until_.load(std::memory_order_relaxed)) {
    return choice_ == WaitChoice::spin ? Step::look : Step::sleep;
  }
  return Step::yield;
}

void WaitLadder::yielded(Wait& wait, base::Instant before, base::Instant after) noexcept {
  const base::Duration took = after - before;
  std::int64_t gap = kGapLeast.count();
  if (took > yield_most()) {
    rests_until_.store(count_of(after + kRest), std::memory_order_relaxed);
  } else if (took < kUseful) {
    gap = std::min(2 * gap_.load(std::memory_order_relaxed), kGapMost.count());
  } else {
    gap = 0;
    if (choice_ == WaitChoice::adaptive) {
      const base::Duration of_others = took - kUseful;
      wait.began += of_others;
      wait.spin_until += of_others;
    }
  }
  gap_.store(std::max(gap, std::int64_t{1}), std::memory_order_relaxed);
  wait.yield_at = after + base::Duration(gap);
}

base::Duration WaitLadder::yield_most() noexcept {
  static const base::Duration most = [] {
    timespec tick{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);  // its resolution is the tick
    return yield_most(std::chrono::nanoseconds(tick.tv_nsec));
  }();
  return most;
}

void WaitLadder::stirred(Wait& wait, base::Instant now) const noexcept {
  if (choice_ == WaitChoice::adaptive && count_of(now) >= rests_until_.load(std::memory_order_relaxed))
    wait.spin_until = std::max(wait.spin_until, now + spin_most_);
}

// After a wake-up for something else, a wait polls once and sleeps again.
void WaitLadder::slept(Wait& wait, base::Instant now) const noexcept {
  wait.has_slept = true;
  if (choice_ != WaitChoice::spin) wait.spin_until = now;
}

void WaitLadder::end(const Wait& wait, base::Instant now) noexcept {
  if (choice_ != WaitChoice::adaptive) return;
  if (now - wait.began <= 2 * spin_most_) {
    if (wait.has_slept) budget_.store(spin_most_.count(), std::memory_order_relaxed);
    return;
  }
  const std::int64_t budget = budget_.load(std::memory_order_relaxed) / 2;
  budget_.store(std::max(budget, std::min(kBudgetLeast, spin_most_).count()), std::memory_order_relaxed);
}

}  // namespace fairlead::queue
