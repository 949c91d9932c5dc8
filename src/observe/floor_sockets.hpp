#pragma once
// What the floors that use sockets share.

#include <cerrno>
#include <cstring>
#include <expected>
#include <string_view>

#include <fmt/format.h>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::observe {

struct SocketPair {
  base::FileDescriptor near, far;
};

/// Of the last system call.
inline std::unexpected<Error> floor_failed(std::string_view floor, std::string_view what) {
  const int number = errno;
  return std::unexpected(
      Error{Status::system, number, fmt::format("cannot {} for the {} floor: {}", what, floor, std::strerror(number))});
}

}  // namespace fairlead::observe
