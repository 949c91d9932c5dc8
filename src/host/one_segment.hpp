#pragma once
// The memory of a queue that is contiguous, and grows within its space.

#include <cstddef>
#include <span>

#include "queue/segment_table.hpp"

namespace fairlead::host {

class OneSegment final : public queue::SegmentSource {
 public:
  explicit OneSegment(std::span<std::byte> memory) : memory_(memory) {}
  std::span<std::byte> map(queue::SegmentNumber number) override {
    return number.value == 0 ? memory_ : std::span<std::byte>();
  }

 private:
  std::span<std::byte> memory_;
};

}  // namespace fairlead::host
