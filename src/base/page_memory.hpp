#pragma once
// Zeroed memory in whole pages straight from the kernel, in huge pages where the size is worth it: bulk data then
// costs fewer page faults and look-ups.

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

  /// `size` > 0 bytes; aligned to a page, and to a huge page from one huge page on. no_memory.
  static Result<PageMemory> allocate(std::uint64_t size);

  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::byte> bytes_;
  std::span<std::byte> mapping_;
};

}  // namespace fairlead::base
