#pragma once
// Counts the system calls of this process and of its later threads, by number. A seccomp filter turns each call into a
// signal, whose handler counts it and makes it. It cannot be removed: use it in a child of the test.
//
// Not counted: returning from a signal, signal masks, the start and the end of threads and processes.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace fairlead::tests {

struct SystemCallCounts {
  static constexpr std::size_t kNumbers = 512;
  std::array<std::atomic<std::uint64_t>, kNumbers> of{};
  std::atomic<std::uint64_t> in_vain{0};  // found nothing (EAGAIN): polls of a socket, which `of` does not contain

  /// Calls of all numbers except those with which a thread waits or gives up its processor.
  std::uint64_t work() const;
  /// "number times, number times": those that work() counts.
  std::string describe_work() const;
};

/// Returns zeroed counts that a process shares with its children.
SystemCallCounts& shared_counts();
/// Begins to count. Returns false if this kernel or processor cannot.
bool count_system_calls(SystemCallCounts& counts);

}  // namespace fairlead::tests
