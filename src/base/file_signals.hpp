#pragma once
// Writes by which the kernel would end the process: to a pipe or socket that nobody reads (SIGPIPE), or beyond the
// limit of file sizes (SIGXFSZ). Here they only fail. Sockets of ours are sent to with MSG_NOSIGNAL instead.

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace fairlead::base {

/// While it lives, neither signal reaches the calling thread; one that came meanwhile is taken away at its end. Ends in
/// the thread that began it. errno stays.
class NoFileSignals {
 public:
  NoFileSignals() noexcept;
  ~NoFileSignals();
  NoFileSignals(const NoFileSignals&) = delete;
  NoFileSignals& operator=(const NoFileSignals&) = delete;

 private:
  sigset_t before_;  // the thread's mask
  sigset_t ours_;    // of the two, those that were not pending already
};

/// ftruncate(), pwrite() of everything, and fallocate(): errno is EFBIG beyond the limit of file sizes.
bool resize_file(int file, std::size_t bytes) noexcept;
bool write_all_at(int file, std::span<const std::byte> bytes, std::size_t offset) noexcept;
bool read_all_at(int file, std::span<std::byte> bytes, std::size_t offset) noexcept;
bool change_room(int file, int mode, std::size_t offset, std::size_t bytes) noexcept;

/// Writes text to a descriptor that is not ours alone (standard error, a log), as far as it takes it at once: how many
/// bytes. Never waits for a reader.
std::size_t write_now(int descriptor, std::string_view text) noexcept;

}  // namespace fairlead::base
