#include "tests/failing_calls/scenario.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace fairlead::tests {

// Uses system calls that never fail.
bool tell(const Part& part, const void* bytes, std::size_t size) {
  return ::syscall(SYS_sendto, part.socket, bytes, size, MSG_NOSIGNAL, nullptr, 0) == static_cast<long>(size);
}

bool hear(const Part& part, void* bytes, std::size_t size) {
  auto* to = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t count = ::read(part.socket, to, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool is_other_gone(const Part& part) {
  char next = 0;
  return ::recv(part.socket, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

}  // namespace fairlead::tests
