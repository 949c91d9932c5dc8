#include "observe/floor_sockets.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/network_namespace.hpp"

namespace fairlead::observe {

std::unexpected<Error> floor_failed(std::string_view floor, std::string_view what) {
  const int number = errno;
  return std::unexpected(
      Error{Status::system, number, fmt::format("cannot {} for the {} floor: {}", what, floor, std::strerror(number))});
}

Result<base::FileDescriptor> open_floor_socket(const FloorEnd& end, int type, sockaddr_in& address) {
  const auto visit = base::NetworkVisit::enter(end.network);
  if (!visit) return std::unexpected(visit.error());
  base::FileDescriptor socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return floor_failed(type == SOCK_STREAM ? "TCP" : "UDP", "make a socket");
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(end.address);
  socklen_t length = sizeof(address);
  auto* kernel = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), kernel, length) != 0)
    return floor_failed(type == SOCK_STREAM ? "TCP" : "UDP", "bind a socket");
  if (::getsockname(socket.get(), kernel, &length) != 0)
    return floor_failed(type == SOCK_STREAM ? "TCP" : "UDP", "name a socket");
  return socket;
}

}  // namespace fairlead::observe
