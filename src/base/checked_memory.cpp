#include "base/checked_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/mapped_memory.hpp"

namespace fairlead::base {
namespace {

using CopyCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

/// `here` is valid memory, `there` may not be. If a system call filter forbids this copy, the memory is probed first.
bool copy_checked(CopyCall call, std::byte* here, std::byte* there, std::uint64_t bytes, bool is_written) {
  const pid_t self = ::getpid();  // not cached: the child of a fork has another
  while (bytes != 0) {
    const iovec ours{here, bytes}, other{there, bytes};
    const ssize_t done = call(self, &ours, 1, &other, 1, 0);
    if (done < 0 && (errno == ENOSYS || errno == EPERM)) {
      if (probe_memory(there, bytes, is_written) != 0) return false;
      std::memmove(is_written ? there : here, is_written ? here : there, bytes);
      return true;
    }
    if (done <= 0) return false;
    here += done;
    there += done;
    bytes -= static_cast<std::uint64_t>(done);
  }
  return true;
}

}  // namespace

bool read_checked(void* to, const void* from, std::uint64_t bytes) noexcept {
  return copy_checked(&::process_vm_readv, static_cast<std::byte*>(to),
                      const_cast<std::byte*>(static_cast<const std::byte*>(from)), bytes, false);
}

bool write_checked(void* to, const void* from, std::uint64_t bytes) noexcept {
  return copy_checked(&::process_vm_writev, const_cast<std::byte*>(static_cast<const std::byte*>(from)),
                      static_cast<std::byte*>(to), bytes, true);
}

}  // namespace fairlead::base
