#pragma once
// Converts between the public clock and the engine's clock. Both are CLOCK_MONOTONIC.

#include <fairlead/time.hpp>

#include "base/time.hpp"

namespace fairlead::net {

constexpr base::Instant to_engine(Instant time) {
  return base::Instant(time.time_since_epoch());
}
constexpr Instant to_public(base::Instant time) {
  return Instant(time.time_since_epoch());
}
constexpr Instant to_public(std::int64_t time_ns) {
  return Instant(Duration(time_ns));
}
static_assert(to_engine(kNever) == base::kNever);

inline Instant now() noexcept {
  return to_public(base::MonotonicClock::now());
}

}  // namespace fairlead::net
