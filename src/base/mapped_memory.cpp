#include "base/mapped_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace fairlead::base {
namespace {

// Kernels before 5.14 cannot populate and return EINVAL, as newer ones do for a missing right. A test on our own stack
// distinguishes the two.
bool can_populate(std::uintptr_t page) {
  char here = 0;
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(&here) & ~(page - 1);
  return ::madvise(reinterpret_cast<void*>(at), page, MADV_POPULATE_READ) == 0;
}

// Fallback: finds out only whether the memory is mapped.
int probe_mapping(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t page) {
  constexpr std::uintptr_t kPages = 4096;
  unsigned char resident[kPages];
  for (std::uintptr_t at = begin; at < end; at += kPages * page) {
    const std::uintptr_t bytes = end - at < kPages * page ? end - at : kPages * page;
    if (::mincore(reinterpret_cast<void*>(at), bytes, resident) != 0) return EFAULT;
  }
  return 0;
}

}  // namespace

int probe_memory(const void* address, std::uint64_t length, bool is_written) noexcept {
  if (length == 0) return 0;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  if (length > UINTPTR_MAX - first - page) return EFAULT;
  const std::uintptr_t begin = first & ~(page - 1);
  const std::uintptr_t end = (first + length + page - 1) & ~(page - 1);
  for (;;) {
    const int advice = is_written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    if (::madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0) return 0;
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL && !can_populate(page)) return probe_mapping(begin, end, page);
    return EFAULT;
  }
}

}  // namespace fairlead::base
