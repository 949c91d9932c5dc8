#pragma once
// Zeroed memory in whole pages from the kernel; huge pages for large sizes, so that bulk data takes fewer page faults
// and TLB misses.

#include <cstddef>
#include <cstdint>
#include <span>

#include <fairlead/error.hpp>

namespace fairlead::base {

class PageMemory {
 public:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes

  PageMemory() = default;
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&& other) noexcept;
  ~PageMemory();

  /// Allocates `size` > 0 bytes, aligned to a page, or to a huge page if `size` is at least one. Error: no_memory.
  static Result<PageMemory> allocate(std::uint64_t size);

  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::byte> bytes_;
  std::span<std::byte> mapping_;
};

}  // namespace fairlead::base
