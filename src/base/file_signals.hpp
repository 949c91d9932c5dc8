#pragma once
// Writes that could end the process by a signal: to a pipe or socket without a reader (SIGPIPE), or beyond the file
// size limit (SIGXFSZ). Here they only fail. Our sockets use MSG_NOSIGNAL instead.

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace fairlead::base {

/// While it lives, neither signal reaches the calling thread; one that arrives meanwhile is discarded at its end. It
/// has to end in the same thread. Preserves errno.
class NoFileSignals {
 public:
  NoFileSignals() noexcept;
  ~NoFileSignals();
  NoFileSignals(const NoFileSignals&) = delete;
  NoFileSignals& operator=(const NoFileSignals&) = delete;

 private:
  sigset_t before_;  // the thread's mask
  sigset_t ours_;    // those of the two that were not pending before
};

/// ftruncate(), pwrite() of all bytes, and fallocate(). errno is EFBIG beyond the file size limit.
bool resize_file(int file, std::size_t bytes) noexcept;
bool write_all_at(int file, std::span<const std::byte> bytes, std::size_t offset) noexcept;
bool read_all_at(int file, std::span<std::byte> bytes, std::size_t offset) noexcept;
bool change_room(int file, int mode, std::size_t offset, std::size_t bytes) noexcept;

/// Writes text to a descriptor that others share (standard error, a log), as much as it takes at once. Returns the
/// number of bytes. Never waits for a reader.
std::size_t write_now(int descriptor, std::string_view text) noexcept;

}  // namespace fairlead::base
