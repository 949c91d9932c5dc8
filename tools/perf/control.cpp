#include "tools/perf/control.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fairlead::tools {

void PerfCommand::set_near_address(std::string_view address) {
  near_address.fill('\0');
  std::ranges::copy(address.substr(0, near_address.size() - 1), near_address.begin());
}

PerfControl::~PerfControl() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<std::pair<PerfControl, PerfControl>> PerfControl::make_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return std::unexpected(
        Error{Status::system, errno, std::string("cannot make a pair of sockets: ") + std::strerror(errno)});
  }
  return std::pair(PerfControl(ends[0]), PerfControl(ends[1]));
}

bool PerfControl::is_readable() const {
  pollfd look{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return poll(&look, 1, 0) > 0;
}

bool PerfControl::send_bytes(const void* bytes, std::size_t size) {
  ssize_t sent;
  do sent = ::send(descriptor_, bytes, size, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

bool PerfControl::receive_bytes(void* bytes, std::size_t size) {
  ssize_t received;
  do received = ::recv(descriptor_, bytes, size, 0);
  while (received < 0 && errno == EINTR);
  return received == static_cast<ssize_t>(size);
}

}  // namespace fairlead::tools
