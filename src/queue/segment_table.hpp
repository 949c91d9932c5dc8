#pragma once
// One side's private table of segments and their local addresses. It is bounded, and the only way from a location in
// shared memory to an address. Locations outside of a segment are refused.

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "queue/location.hpp"

namespace fairlead::queue {

/// Maps a segment when a side first meets it. An empty span refuses the number.
class SegmentSource {
 public:
  virtual std::span<std::byte> map(SegmentNumber number) = 0;

 protected:
  ~SegmentSource() = default;
};

class SegmentTable {
 public:
  /// Without a source, only attached segments are known.
  explicit SegmentTable(SegmentSource* source = nullptr) : source_(source) {}

  /// Returns false if the number is out of range or taken, or the memory is too big or not aligned to a cache line.
  bool attach(SegmentNumber number, std::span<std::byte> memory) noexcept;
  /// Maps a segment now instead of on first use; returns false if it is refused.
  bool prepare(SegmentNumber number) noexcept;

  /// Returns the address of `bytes` bytes at a location; null if they do not all lie in a known segment.
  std::byte* resolve(Location location, std::uint64_t bytes) noexcept {
    if (location.segment.value >= kSegmentsMax) return nullptr;
    const auto& memory = mapped_[location.segment.value];
    if (memory.empty()) [[unlikely]] {
      if (!prepare(location.segment)) return nullptr;
    }
    if (memory.size() < bytes || memory.size() - bytes < location.offset) return nullptr;
    return memory.data() + location.offset;
  }

  /// Returns the location of `bytes` bytes at a local address; nothing if they do not all lie in one segment.
  std::optional<Location> locate(std::uintptr_t address, std::uint64_t bytes) const noexcept;

 private:
  SegmentSource* source_;
  std::array<std::span<std::byte>, kSegmentsMax> mapped_{};
  std::uint32_t end_ = 0;  // one above the highest number in use
};

}  // namespace fairlead::queue
