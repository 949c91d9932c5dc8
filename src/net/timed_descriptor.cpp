#include "net/timed_descriptor.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <utility>

namespace fairlead::net {
namespace {

bool watch(const base::FileDescriptor& set, int descriptor) {
  epoll_event readable{.events = EPOLLIN, .data = {}};
  return ::epoll_ctl(set.get(), EPOLL_CTL_ADD, descriptor, &readable) == 0;
}

timespec to_timespec(Instant at) {
  constexpr Instant kFirst = Instant(Duration(1));  // because 0 would disarm the timer
  const auto time = std::max(at, kFirst).time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

}  // namespace

int TimedDescriptor::open(int other) {
  if (both_.get() >= 0 || other < 0) return both_.get();
  base::FileDescriptor both(::epoll_create1(EPOLL_CLOEXEC));
  base::FileDescriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (both.get() < 0 || timer.get() < 0 || !watch(both, other) || !watch(both, timer.get())) return -1;
  both_ = std::move(both);
  timer_ = std::move(timer);
  return both_.get();
}

void TimedDescriptor::set(Instant at) {
  if (timer_.get() < 0 || at == set_to_) return;
  const itimerspec when{.it_interval = {}, .it_value = at == kNever ? timespec{} : to_timespec(at)};
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0) set_to_ = at;
}

}  // namespace fairlead::net
