#pragma once
// The error of a descriptor that epoll cannot watch.

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <fairlead/error.hpp>

namespace fairlead::host {

inline Error cannot_watch(int number) {
  return {Status::system, number,
          fmt::format("the host engine cannot watch a descriptor: epoll_ctl failed: {}{}", std::strerror(number),
                      number == ENOSPC ? ": raise fs.epoll.max_user_watches" : "")};
}

}  // namespace fairlead::host
