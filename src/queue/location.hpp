#pragma once
// How shared memory refers to places: by segment and offset, never by address. A segment is memory that both sides have
// mapped, each at its own address. They agree on its number when it is handed over.

#include <cstdint>

namespace fairlead::queue {

inline constexpr std::uint32_t kSegmentsMax = 64;
inline constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{1} << 32;

struct SegmentNumber {
  std::uint32_t value = 0;
  bool operator==(const SegmentNumber&) const = default;
};

/// A place in a segment; the offset is in bytes.
struct Location {
  SegmentNumber segment;
  std::uint32_t offset = 0;

  std::uint64_t pack() const noexcept { return std::uint64_t{segment.value} << 32 | offset; }
  static Location unpack(std::uint64_t word) noexcept {
    return {{static_cast<std::uint32_t>(word >> 32)}, static_cast<std::uint32_t>(word)};
  }
};

/// The place of a run descriptor, which is one cache line. So segment (6 bits) and line (26 bits) fit into one word
/// beside a count. Line 0 of segment 0 is the queue's header, so the word zero names no run.
struct RunLocation {
  static constexpr std::uint32_t kLineBytes = 64;
  static constexpr std::uint32_t kLineBits = 26;
  std::uint32_t word = 0;

  static RunLocation of(Location place) noexcept {
    return {place.segment.value << kLineBits | place.offset / kLineBytes};
  }
  Location place() const noexcept { return {{word >> kLineBits}, (word & ((1U << kLineBits) - 1)) * kLineBytes}; }
  bool is_none() const noexcept { return word == 0; }
};
static_assert(kSegmentsMax == 1U << (32 - RunLocation::kLineBits));
static_assert(kSegmentBytesMax == std::uint64_t{RunLocation::kLineBytes} << RunLocation::kLineBits);

}  // namespace fairlead::queue
