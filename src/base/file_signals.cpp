#include "base/file_signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

namespace fairlead::base {

NoFileSignals::NoFileSignals() noexcept {
  sigset_t pending;
  ::sigpending(&pending);
  ::sigemptyset(&ours_);
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    if (::sigismember(&pending, number) == 0) ::sigaddset(&ours_, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
}

// Both signals go to the writing thread, and to no other.
NoFileSignals::~NoFileSignals() {
  const int number = errno;
  constexpr timespec kNow{};
  while (::sigtimedwait(&ours_, nullptr, &kNow) > 0) continue;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = number;
}

bool resize_file(int file, std::size_t bytes) noexcept {
  const NoFileSignals quiet;
  return ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
}

// Plain system calls: whole pages may hold bytes that belong to no object, and a sanitizer would complain.
bool write_all_at(int file, std::span<const std::byte> bytes, std::size_t offset) noexcept {
  const NoFileSignals quiet;
  while (!bytes.empty()) {
    const long wrote = ::syscall(SYS_pwrite64, file, bytes.data(), bytes.size(), offset);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<std::size_t>(wrote);
  }
  return true;
}

bool read_all_at(int file, std::span<std::byte> bytes, std::size_t offset) noexcept {
  while (!bytes.empty()) {
    const long got = ::syscall(SYS_pread64, file, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::size_t>(got);
  }
  return true;
}

bool change_room(int file, int mode, std::size_t offset, std::size_t bytes) noexcept {
  const NoFileSignals quiet;
  return ::fallocate(file, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0;
}

// A pipe that poll() reports as writable takes PIPE_BUF bytes at once; a file takes everything.
std::size_t write_now(int descriptor, std::string_view text) noexcept {
  const NoFileSignals quiet;
  std::size_t done = 0;
  while (done < text.size()) {
    pollfd look{descriptor, POLLOUT, 0};
    if (::poll(&look, 1, 0) != 1) break;  // a descriptor with an error fails at once
    const ssize_t wrote = ::write(descriptor, text.data() + done, std::min<std::size_t>(text.size() - done, PIPE_BUF));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  return done;
}

}  // namespace fairlead::base
