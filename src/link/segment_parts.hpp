#pragma once
// One peer's segments that come in parts, until they are whole. Few at a time: a sender begins the next one when the
// one before is out, so one who needs more has lost something, and the oldest makes room.

#include <array>
#include <cstddef>
#include <span>

#include "link/parts_room.hpp"

namespace fairlead::link {

class SegmentParts {
 public:
  static constexpr std::size_t kSegmentsMost = 4;

  /// The bytes are held in `room`.
  explicit SegmentParts(PartsRoom& room) : room_(room) {}
  ~SegmentParts() {
    for (PartialSegment& segment : segments_) room_.forget(segment);
  }
  SegmentParts(const SegmentParts&) = delete;
  SegmentParts& operator=(const SegmentParts&) = delete;

  /// Takes a part; the segment's payload if it is whole now (valid until the next call of any peer), else nothing.
  std::span<const std::byte> add(wire::Sequence sequence, const wire::Part& part);

 private:
  PartialSegment& place_of(wire::Sequence sequence, const wire::Part& part);

  PartsRoom& room_;
  std::array<PartialSegment, kSegmentsMost> segments_;
};

}  // namespace fairlead::link
