#pragma once
// Times on the wire: 32 bits of 64 ns ticks of the sender's own clock, which wrap every 275 s. Only the sender
// evaluates its own timestamps, so clocks need not agree.

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::wire {

struct Ticks {
  std::uint32_t value = 0;
  constexpr bool operator==(const Ticks&) const = default;
};

inline constexpr std::int64_t kTick = 64;  // nanoseconds

constexpr Ticks to_ticks(base::Instant instant) {
  return {static_cast<std::uint32_t>(instant.time_since_epoch().count() / kTick)};
}

/// Converts a span of time; limited to 31 bits (137 s).
constexpr Ticks to_ticks(base::Duration span) {
  return {static_cast<std::uint32_t>(std::clamp<std::int64_t>(span.count() / kTick, 0, INT32_MAX))};
}

constexpr base::Duration to_duration(Ticks span) {
  return base::Duration(std::int64_t{span.value} * kTick);
}

/// Time from `from` to `to` on the same clock; negative if `to` is earlier.
constexpr base::Duration elapsed(Ticks from, Ticks to) {
  return base::Duration(std::int64_t{static_cast<std::int32_t>(to.value - from.value)} * kTick);
}

}  // namespace fairlead::wire
