#pragma once
// One side's private view of the segments: where each is mapped here. Bounded, and the only way from a location in
// shared memory to an address; whatever leaves a segment is refused.

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "queue/location.hpp"

namespace fairlead::queue {

/// Maps a segment when it is first met; called by the side that meets it. An empty span refuses the number.
class SegmentSource {
 public:
  virtual std::span<std::byte> map(SegmentNumber number) = 0;

 protected:
  ~SegmentSource() = default;
};

class SegmentTable {
 public:
  /// Without a source, only what was attached is known.
  explicit SegmentTable(SegmentSource* source = nullptr) : source_(source) {}

  /// False: no such number, already taken, not aligned to a line, or too big.
  bool attach(SegmentNumber number, std::span<std::byte> memory) noexcept;
  /// Maps now what would be mapped on first use; false if refused.
  bool prepare(SegmentNumber number) noexcept;

  /// The address of `bytes` at a location; null if they do not all lie in a known segment.
  std::byte* resolve(Location location, std::uint64_t bytes) noexcept {
    if (location.segment.value >= kSegmentsMax) return nullptr;
    const auto& memory = mapped_[location.segment.value];
    if (memory.empty()) [[unlikely]] {
      if (!prepare(location.segment)) return nullptr;
    }
    if (memory.size() < bytes || memory.size() - bytes < location.offset) return nullptr;
    return memory.data() + location.offset;
  }

  /// The location of `bytes` at an address of this side; nothing if they do not all lie in one segment.
  std::optional<Location> locate(std::uintptr_t address, std::uint64_t bytes) const noexcept;

 private:
  SegmentSource* source_;
  std::array<std::span<std::byte>, kSegmentsMax> mapped_{};
  std::uint32_t end_ = 0;  // behind the highest number in use
};

}  // namespace fairlead::queue
