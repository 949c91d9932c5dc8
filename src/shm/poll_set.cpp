#include "shm/poll_set.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>

namespace fairlead::shm {

void PollSet::open() {
  epoll_ = base::FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
}

bool PollSet::add(int descriptor, std::uint64_t name) const {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = name}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void PollSet::watch(int descriptor, std::uint64_t name, bool does) const {
  epoll_event event{.events = does ? EPOLLIN : 0U, .data = {.u64 = name}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void PollSet::remove(int descriptor) const {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

std::span<const std::uint64_t> PollSet::ready(std::span<std::uint64_t, kAtOnce> room) const {
  std::array<epoll_event, kAtOnce> events;
  const int count = std::max(::epoll_wait(epoll_.get(), events.data(), static_cast<int>(kAtOnce), 0), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) room[i] = events[i].data.u64;
  return room.first(static_cast<std::size_t>(count));
}

}  // namespace fairlead::shm
