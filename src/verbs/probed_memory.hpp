#pragma once
// Memory of live regions that was found mapped when they were registered. Registering it again, or a part of it, does
// not touch all its pages once more: for 1 GiB that takes 60 ms.

#include <cstdint>
#include <map>
#include <mutex>

namespace fairlead::verbs {

class ProbedMemory {
 public:
  /// A use of memory by one region. Name it when the region ends.
  struct Use {
    std::uintptr_t begin = 0;
    bool is_written = false, is_counted = false;
  };

  /// Checks that the memory is mapped, as base::probe_memory() does. Returns 0, with `use`, or an errno. Any thread.
  int enter(const void* address, std::uint64_t length, bool is_written, Use& use);
  void leave(const Use& use);

 private:
  struct Range {
    std::uintptr_t end = 0;
    std::uint64_t users = 0;
  };
  using Ranges = std::map<std::uintptr_t, Range>;  // by begin

  bool join(std::uintptr_t begin, std::uintptr_t end, bool is_written, Use& use);

  std::mutex mutex_;
  Ranges readable_, writable_;
};

}  // namespace fairlead::verbs
