#pragma once
// Points in time of the public interface: absolute, on the monotonic clock.

#include <chrono>

namespace fairlead {

using Duration = std::chrono::nanoseconds;

/// std::chrono::steady_clock, in nanoseconds. A deadline is `Instant::clock::now() + 5s`.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// No deadline.
inline constexpr Instant kNever = Instant::max();

}  // namespace fairlead
