#include "queue/segment_table.hpp"

#include <algorithm>
#include <cstdint>

namespace fairlead::queue {

bool SegmentTable::attach(SegmentNumber number, std::span<std::byte> memory) noexcept {
  if (number.value >= kSegmentsMax || memory.empty() || memory.size() > kSegmentBytesMax) return false;
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % RunLocation::kLineBytes != 0) return false;
  if (!mapped_[number.value].empty()) return false;
  mapped_[number.value] = memory;
  end_ = std::max(end_, number.value + 1);
  return true;
}

bool SegmentTable::prepare(SegmentNumber number) noexcept {
  if (number.value >= kSegmentsMax) return false;
  if (!mapped_[number.value].empty()) return true;
  return source_ != nullptr && attach(number, source_->map(number));
}

std::optional<Location> SegmentTable::locate(std::uintptr_t address, std::uint64_t bytes) const noexcept {
  for (std::uint32_t number = 0; number < end_; ++number) {
    const auto& memory = mapped_[number];
    const auto offset = address - reinterpret_cast<std::uintptr_t>(memory.data());
    if (memory.size() >= bytes && offset <= memory.size() - bytes && !memory.empty()) {
      return Location{{number}, static_cast<std::uint32_t>(offset)};
    }
  }
  return std::nullopt;
}

}  // namespace fairlead::queue
