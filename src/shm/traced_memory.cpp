#include "shm/traced_memory.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

namespace fairlead::shm {

bool TracedMemory::is_safe(const char* scope) {
  int restricts = 1;
  if (std::ifstream(scope) >> restricts) return restricts == 0;
  return ::access(scope, F_OK) != 0 && errno == ENOENT && ::access("/proc/self/fd", F_OK) == 0;
}

std::unique_ptr<TracedMemory> TracedMemory::create(std::uint64_t bytes) {
  auto arena = Arena::create(0, bytes);
  return arena ? std::unique_ptr<TracedMemory>(new TracedMemory(std::move(*arena))) : nullptr;
}

base::FileDescriptor TracedMemory::open_process(std::int32_t process) {
  return base::FileDescriptor(process > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, process, 0)) : -1);
}

Result<Memory> TracedMemory::fetch(const base::FileDescriptor& process, int file, std::uint64_t bytes) {
  const base::FileDescriptor fetched(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), file, 0)));
  if (!fetched.is_open()) return std::unexpected(Error{Status::not_permitted, errno, "the kernel does not let us"});
  auto memory = Arena::view(fetched.get(), bytes);
  // We only read there.
  if (memory && ::mprotect(memory->head(), bytes, PROT_READ) != 0)
    return std::unexpected(Error{Status::system, errno, {}});
  return memory;
}

std::optional<RangePlace> TracedMemory::take(std::span<std::byte> range, bool is_alone) {
  constexpr int kDumpable = 1;  // 0 and 2: only root may trace it
  return ranges_.take(range, is_alone && ::prctl(PR_GET_DUMPABLE) == kDumpable);
}

}  // namespace fairlead::shm
