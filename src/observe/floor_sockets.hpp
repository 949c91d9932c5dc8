#pragma once
// What the floors that use sockets share.

#include <netinet/in.h>

#include <expected>
#include <string_view>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "observe/floor.hpp"

namespace fairlead::observe {

struct SocketPair {
  base::FileDescriptor near, far;
};

/// Of the last system call.
std::unexpected<Error> floor_failed(std::string_view floor, std::string_view what);

/// A socket of this type (SOCK_DGRAM, SOCK_STREAM, with flags) at this end, on a port of the kernel's choice, which
/// `address` tells.
Result<base::FileDescriptor> open_floor_socket(const FloorEnd& end, int type, sockaddr_in& address);

}  // namespace fairlead::observe
