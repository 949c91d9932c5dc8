#include "tools/perf/tcp.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace fairlead::tools {
namespace {

constexpr int kListenQueue = 16;

std::unexpected<Error> kernel_error(Status status, int number) {
  return std::unexpected(Error{status, number, std::strerror(number)});
}

void set_option(int socket, int level, int name, int value) {
  (void)::setsockopt(socket, level, name, &value, sizeof value);
}

void make_blocking(int socket) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
}

void watch_over(int socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 5);  // seconds
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 5);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace

Result<base::FileDescriptor> connect_tcp(const base::SocketAddress& server, Duration at_most) {
  sockaddr_in6 to{};
  const int family = server.is_v4() ? AF_INET : AF_INET6;
  const unsigned length = server.to_kernel(reinterpret_cast<sockaddr*>(&to), family);
  base::FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return kernel_error(Status::system, errno);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), length) != 0) {
    if (errno != EINPROGRESS) return kernel_error(Status::unreachable, errno);
    pollfd look{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
    if (::poll(&look, 1, static_cast<int>(patience)) <= 0) return kernel_error(Status::unreachable, ETIMEDOUT);
    int number = 0;
    socklen_t size = sizeof number;
    (void)::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &number, &size);
    if (number != 0) return kernel_error(Status::unreachable, number);
  }
  make_blocking(socket.get());
  watch_over(socket.get());
  return socket;
}

Result<base::FileDescriptor> listen_tcp(const base::SocketAddress& address) {
  sockaddr_in6 at{};
  const int family = address.is_v4() ? AF_INET : AF_INET6;
  const unsigned length = address.to_kernel(reinterpret_cast<sockaddr*>(&at), family);
  base::FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return kernel_error(Status::system, errno);
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), length) != 0 || ::listen(socket.get(), kListenQueue) != 0)
    return kernel_error(Status::system, errno);
  return socket;
}

Result<TcpClient> accept_tcp(int listener) {
  sockaddr_in6 from{};
  socklen_t length = sizeof from;
  base::FileDescriptor socket(::accept4(listener, reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC));
  if (!socket.is_open()) {
    const int number = errno;
    const bool is_short = number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
    return kernel_error(is_short ? Status::system : Status::again, number);
  }
  watch_over(socket.get());
  auto address = base::SocketAddress::from_kernel(reinterpret_cast<const sockaddr*>(&from), length);
  if (!address) return std::unexpected(std::move(address.error()));
  return TcpClient{std::move(socket), *address};
}

Result<base::SocketAddress> own_address(int socket) {
  sockaddr_in6 own{};
  socklen_t length = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) != 0)
    return kernel_error(Status::system, errno);
  return base::SocketAddress::from_kernel(reinterpret_cast<const sockaddr*>(&own), length);
}

}  // namespace fairlead::tools
