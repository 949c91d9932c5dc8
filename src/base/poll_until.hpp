#pragma once

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <span>

#include "base/time.hpp"

namespace fairlead::base {

/// Calls ppoll() until an absolute time; kNever waits without a limit.
inline void poll_until(std::span<pollfd> descriptors, Instant deadline) {
  const auto left = std::max(deadline - MonotonicClock::now(), Duration::zero());
  const timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  ::ppoll(descriptors.data(), descriptors.size(), deadline == kNever ? nullptr : &time, nullptr);
}

}  // namespace fairlead::base
