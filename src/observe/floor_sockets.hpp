#pragma once
// Common parts of the floors over sockets.

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

/// Makes an error from the last system call.
std::unexpected<Error> floor_failed(std::string_view floor, std::string_view what);

/// Opens a socket of this type (SOCK_DGRAM or SOCK_STREAM, with flags) at this end. The kernel chooses the port;
/// `address` receives it.
Result<base::FileDescriptor> open_floor_socket(const FloorEnd& end, int type, sockaddr_in& address);

}  // namespace fairlead::observe
