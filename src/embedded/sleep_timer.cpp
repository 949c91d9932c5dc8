#include "embedded/sleep_timer.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <cstdint>

namespace fairlead::embedded {

SleepTimer::SleepTimer() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}

int SleepTimer::descriptor_for(base::Instant deadline, base::Instant now) {
  if (has_failed_) return -1;
  if (set_for_ > now && set_for_ <= deadline) return timer_.get();
  // Setting it also ends that it is readable. A time of 0 would switch it off.
  const auto at = std::max<std::int64_t>(deadline.time_since_epoch().count(), 1);
  const itimerspec when{.it_interval = {}, .it_value = {.tv_sec = at / 1'000'000'000, .tv_nsec = at % 1'000'000'000}};
  has_failed_ = ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) != 0;
  if (has_failed_) return -1;
  set_for_ = deadline;
  return timer_.get();
}

}  // namespace fairlead::embedded
