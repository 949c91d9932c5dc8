#include "tools/doctor/closed_port.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/file_descriptor.hpp"

namespace fairlead::tools {
namespace {

// As traceroute does: the end of its range, above the ephemeral ports of few systems only. One may be in use by chance.
constexpr std::array<std::uint16_t, 3> kClosedPorts{33'523, 33'529, 33'533};
constexpr int kMillisecondsEach = 500;

/// Returns whether the kernel has reported that the port is closed.
bool is_refused(base::SocketAddress to) {
  const int family = to.is_v4() ? AF_INET : AF_INET6;
  const base::FileDescriptor probe(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage storage{};
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  const unsigned length = to.to_kernel(address, family);
  if (::connect(probe.get(), address, length) != 0) return false;
  char byte = 0;
  if (::send(probe.get(), &byte, sizeof byte, MSG_NOSIGNAL) < 0) return errno == ECONNREFUSED;
  pollfd wait{.fd = probe.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, kMillisecondsEach) <= 0) return false;
  return ::recv(probe.get(), &byte, sizeof byte, 0) < 0 && errno == ECONNREFUSED;
}

}  // namespace

bool is_refused_at_closed_port(const base::SocketAddress& host) {
  for (const std::uint16_t port : kClosedPorts) {
    base::SocketAddress to = host;
    to.port = port;
    if (is_refused(to)) return true;
  }
  return false;
}

}  // namespace fairlead::tools
