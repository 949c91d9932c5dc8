#pragma once
// Copies between contiguous and scattered memory (iovec lists) by byte offset. The caller guarantees the bounds, which
// were checked when the operation was submitted.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/uio.h>

namespace fairlead::base {

/// Returns the bytes in a list; saturates on overflow.
inline std::uint64_t scatter_size(std::span<const iovec> memory) noexcept {
  std::uint64_t size = 0;
  for (const iovec& piece : memory) {
    if (piece.iov_len > UINT64_MAX - size) return UINT64_MAX;
    size += piece.iov_len;
  }
  return size;
}

void scatter_write(std::span<const iovec> memory, std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

/// Copies `length` bytes from the start of one list to an offset of another.
void scatter_copy(std::span<const iovec> to, std::uint64_t to_offset, std::span<const iovec> from,
                  std::uint64_t length) noexcept;

/// Part of a list: `length` bytes from `offset` on, as pieces in `out`, which is as long as the list.
std::span<const iovec> scatter_part(std::span<const iovec> memory, std::uint64_t offset, std::uint64_t length,
                                    std::span<iovec> out) noexcept;

/// Copies `length` > 0 bytes from the start of a list. Stores the last byte after all others, with release order, so
/// that a program may poll it. An aligned whole word is stored at once, as a device would do.
void scatter_store(std::byte* to, std::span<const iovec> from, std::uint64_t length) noexcept;

}  // namespace fairlead::base
