#pragma once
// Copies a few bytes without a function call, which would cost more than the copy.

#include <cstddef>
#include <cstdint>

namespace fairlead::base {

[[gnu::always_inline]] inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  // Copies one word from each end; the two may overlap.
  const auto copy_ends = [=]<typename Word>(Word first, Word last) {
    __builtin_memcpy(&first, from, sizeof first);
    __builtin_memcpy(&last, from + bytes - sizeof last, sizeof last);
    __builtin_memcpy(to, &first, sizeof first);
    __builtin_memcpy(to + bytes - sizeof last, &last, sizeof last);
  };
  struct Wide {
    std::uint64_t words[2];
  };
  if (bytes >= sizeof(std::uint64_t) && bytes <= 2 * sizeof(std::uint64_t)) [[likely]]
    return copy_ends(std::uint64_t{}, std::uint64_t{});
  if (bytes > 2 * sizeof(Wide)) return static_cast<void>(__builtin_memcpy(to, from, bytes));
  if (bytes > sizeof(Wide)) return copy_ends(Wide{}, Wide{});
  if (bytes >= sizeof(std::uint32_t)) return copy_ends(std::uint32_t{}, std::uint32_t{});
  for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

}  // namespace fairlead::base
