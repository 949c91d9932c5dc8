#pragma once
// Time is an argument: everything below the engine takes an Instant and reads no clock (style rule 3).

#include <chrono>
#include <cstdint>

namespace fairlead::base {

using Duration = std::chrono::nanoseconds;

/// The clock of this host, or the simulator's; only now() differs.
struct MonotonicClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

using Instant = MonotonicClock::time_point;

inline constexpr Instant kNever = Instant::max();

}  // namespace fairlead::base
