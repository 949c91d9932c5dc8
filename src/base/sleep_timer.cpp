#include "base/sleep_timer.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <cstdint>

#include "base/poll_until.hpp"

namespace fairlead::base {

SleepTimer::SleepTimer() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}

int SleepTimer::descriptor_for(Instant deadline, Instant now) {
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

void SleepTimer::sleep(std::span<pollfd> descriptors, Instant deadline) {
  const auto now = MonotonicClock::now();
  const int timer = deadline > now && deadline - now < kShortSleep ? descriptor_for(deadline, now) : -1;
  descriptors.back() = {timer, POLLIN, 0};
  poll_until(descriptors, timer >= 0 ? kNever : deadline);
}

}  // namespace fairlead::base
