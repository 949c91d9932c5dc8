#pragma once
// Adaptive waiting: decides at each step of a wait whether to poll, to yield or to sleep. It does none of them itself
// and reads no clock, so tests need none. All waits for one engine share it, whatever they wait for.
//
// Polling. A wake-up costs both sides 10 to 20 us, so a wait polls for `spin_most` before it sleeps. If the wait then
// lasts much longer, polling was useless, and the next wait polls half as long, down to about 1 us. A short wait that
// slept restores the whole time. (Less would not do: two sides that both sleep answer too late for a shorter time.)
//
// Yielding. If more threads poll than there are processors, each would use up its time slice before the one it waits
// for may run. So polls are followed by yields, the first one soon. A yield that returns at once shows that nobody
// wanted the processor, and doubles the gap before the next one. A yield that let another thread run makes the gap
// short again. The time of such a yield is not the wait's own, except the cost of switching to the other thread: with
// many ranks on a processor one yield takes longer than `spin_most`.
//
// Other programs. A yield to a program that computes costs milliseconds, and so does using up a time slice beside it.
// But the scheduler prefers a woken thread to it. So after an expensive yield waits sleep at once, for a while. A yield
// is expensive from a quarter of the scheduler's tick on (1 ms at 250 Hz): whoever computes runs until the tick, while
// whoever also waits yields earlier.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::queue {

enum class WaitChoice : std::uint8_t {
  adaptive,
  spin,    // never sleep
  polite,  // sleep only after an expensive yield
  sleep,   // poll once, then sleep
};

class WaitLadder {
 public:
  enum class Step : std::uint8_t { look, yield, sleep };

  /// State of one wait of one thread.
  struct Wait {
    base::Instant began{}, spin_until{}, yield_at{};
    bool has_slept = false;
  };

  WaitLadder(WaitChoice choice, base::Duration spin_most) noexcept
      : choice_(choice), spin_most_(spin_most), budget_(spin_most.count()) {}

  Wait begin(base::Instant now) const noexcept;
  /// Returns what to do after a poll that found nothing.
  Step next(const Wait& wait, base::Instant now) const noexcept;
  /// Called after a yield.
  void yielded(Wait& wait, base::Instant before, base::Instant after) noexcept;
  /// Called when something happened that was not awaited: what is awaited may be next.
  void stirred(Wait& wait, base::Instant now) const noexcept;
  /// Called after a sleep.
  void slept(Wait& wait, base::Instant now) const noexcept;
  /// Called at the end of the wait, whatever its result.
  void end(const Wait& wait, base::Instant now) noexcept;

  /// The longest yield that is not expensive, on this host and with a given tick of the scheduler.
  static base::Duration yield_most() noexcept;
  static constexpr base::Duration yield_most(base::Duration tick) noexcept { return std::max(kYieldMost, tick / 4); }

  static constexpr base::Duration kGapLeast = std::chrono::nanoseconds(500);
  static constexpr base::Duration kGapMost = std::chrono::microseconds(16);
  // a yield this long has let another thread run; also the cost of that
  static constexpr base::Duration kUseful = std::chrono::microseconds(2);
  static constexpr base::Duration kYieldMost = std::chrono::microseconds(300);  // at least, if the tick is short
  static constexpr base::Duration kRest = std::chrono::milliseconds(20);
  static constexpr base::Duration kBudgetLeast = std::chrono::microseconds(1);

 private:
  const WaitChoice choice_;
  const base::Duration spin_most_;
  // Hints: a lost update costs one yield or a few microseconds.
  std::atomic<std::int64_t> budget_;
  std::atomic<std::int64_t> gap_{kGapLeast.count()};
  std::atomic<std::int64_t> rests_until_{0};
};

}  // namespace fairlead::queue
