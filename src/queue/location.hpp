#pragma once
// How shared memory names places: by segment and offset, never by address. A segment is a piece of memory that both
// sides have mapped, each where it likes; its number is agreed when it is handed over.

#include <cstdint>

namespace fairlead::queue {

inline constexpr std::uint32_t kSegmentsMax = 64;
inline constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{1} << 32;

struct SegmentNumber {
  std::uint32_t value = 0;
  bool operator==(const SegmentNumber&) const = default;
};

/// A place in a segment, in bytes.
struct Location {
  SegmentNumber segment;
  std::uint32_t offset = 0;

  std::uint64_t pack() const noexcept { return std::uint64_t{segment.value} << 32 | offset; }
  static Location unpack(std::uint64_t word) noexcept {
    return {{static_cast<std::uint32_t>(word >> 32)}, static_cast<std::uint32_t>(word)};
  }
};

/// The place of a run descriptor: a whole line, so that segment (6 bits) and line (26 bits) fit beside a count in one
/// word. Line 0 of segment 0 is the queue's header, so that a word of zero names no run.
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
