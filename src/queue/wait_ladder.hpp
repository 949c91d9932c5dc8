#pragma once
// How a wait goes on from one moment to the next: look, yield, or sleep. It does neither by itself and has no clock, so
// a test needs none; shared by all who wait for one engine, whatever they wait for.
//
// Looking. A wake-up costs both sides 10 to 20 us, so a wait looks for `spin_most` before it sleeps. That was in vain
// if the wait then lasts much longer: the next one looks half as long, down to not at all, and a short wait brings the
// whole time back. (It has to be the whole: two who both sleep answer each other too late for a little of it.)
//
// Yielding. Where more threads look than there are processors, each would use up its time slice before the one it waits
// for may run. So a look is followed by a yield, at first soon; one that comes back at once tells that nobody wanted
// the processor, and doubles the pause before the next; one that let somebody run makes it short again.
//
// Foreigners. A yield to a program that computes costs milliseconds, and so does a time slice used up beside it, but a
// sleeper that is woken is preferred to it. So after a dear yield waits sleep at once, for a while.

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::queue {

enum class WaitChoice : std::uint8_t {
  adaptive,
  spin,    // never sleep
  polite,  // sleep only where a yield was dear
  sleep,   // never look longer than once
};

class WaitLadder {
 public:
  enum class Step : std::uint8_t { look, yield, sleep };

  /// One wait of one thread.
  struct Wait {
    base::Instant began{}, spin_until{}, yield_at{};
    bool has_slept = false;
  };

  WaitLadder(WaitChoice choice, base::Duration spin_most) noexcept
      : choice_(choice), spin_most_(spin_most), budget_(spin_most.count()) {}

  Wait begin(base::Instant now) const noexcept;
  /// What to do after a look in vain.
  Step next(const Wait& wait, base::Instant now) const noexcept;
  /// After a yield.
  void yielded(Wait& wait, base::Instant before, base::Instant after) noexcept;
  /// Something happened, though not what is waited for: it may be next.
  void stirred(Wait& wait, base::Instant now) const noexcept;
  /// After a sleep.
  void slept(Wait& wait, base::Instant now) const noexcept;
  /// It is over, well or not.
  void end(const Wait& wait, base::Instant now) noexcept;

  static constexpr base::Duration kGapLeast = std::chrono::nanoseconds(500);
  static constexpr base::Duration kGapMost = std::chrono::microseconds(16);
  static constexpr base::Duration kUseful = std::chrono::microseconds(2);  // a yield this long has let somebody run
  static constexpr base::Duration kDear = std::chrono::microseconds(300);
  static constexpr base::Duration kRest = std::chrono::milliseconds(20);
  static constexpr base::Duration kBudgetLeast = std::chrono::microseconds(1);

 private:
  const WaitChoice choice_;
  const base::Duration spin_most_;
  // Hints: a lost update costs a yield or a few microseconds.
  std::atomic<std::int64_t> budget_;
  std::atomic<std::int64_t> gap_{kGapLeast.count()};
  std::atomic<std::int64_t> rests_until_{0};
};

}  // namespace fairlead::queue
