#include "base/time.hpp"

#include <ctime>

namespace fairlead::base {

Instant MonotonicClock::now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Instant(std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec));
}

}  // namespace fairlead::base
