#pragma once
// Registered memory without a remote right. The program gave nobody access to it, but a peer that reads a long send in
// place saves a copy. So the memory is moved into a file of its own, which is not handed to anyone. A peer fetches the
// descriptor by itself (pidfd_getfd), and the kernel permits that only to a process that may trace this one. Such a
// process can read and write all our memory anyway, so the file gives no new right.
//
// /proc/PID/fd is the only other way to the file. The kernel checks the same there, except for Yama, which restricts
// tracing only. Where Yama does so, there is no such file, and these sends go through the rings.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "shm/arena.hpp"
#include "shm/memory.hpp"
#include "shm/remapped_ranges.hpp"

namespace fairlead::shm {

class TracedMemory {
 public:
  /// Returns whether the kernel protects the descriptors of a process as well as its memory: there is no Yama, or it
  /// does not restrict tracing. `scope` is Yama's file.
  static bool is_safe(const char* scope = "/proc/sys/kernel/yama/ptrace_scope");

  /// Creates an empty file of this size. Returns null if the kernel has no room or no descriptor for it.
  static std::unique_ptr<TracedMemory> create(std::uint64_t bytes);

  /// Opens a process, so that its number cannot be reused. Prove its identity afterwards.
  static base::FileDescriptor open_process(std::int32_t process);
  /// Maps the file of that process. Fails if the kernel does not let us trace the process, or as Arena::view().
  static Result<Memory> fetch(const base::FileDescriptor& process, int file, std::uint64_t bytes);

  int descriptor() const noexcept { return arena_.descriptor(); }
  std::uint64_t bytes() const noexcept { return arena_.bytes(); }
  RemappedRanges& ranges() noexcept { return ranges_; }
  const RemappedRanges& ranges() const noexcept { return ranges_; }

  /// Moves the range, as RemappedRanges::take(). Returns nullopt also if nobody may trace this process now
  /// (PR_SET_DUMPABLE), because peers may have mapped the file before.
  std::optional<RangePlace> take(std::span<std::byte> range, bool is_alone);

 private:
  explicit TracedMemory(Arena arena) : arena_(std::move(arena)) {}

  Arena arena_;
  RemappedRanges ranges_{arena_};
};

}  // namespace fairlead::shm
