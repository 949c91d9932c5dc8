#pragma once
// Assembles one peer's segments that arrive in parts. Few at a time: a sender begins the next segment after all parts
// of the one before are out. If more are needed, parts were lost, and the oldest entry gives way.

#include <array>
#include <cstddef>
#include <span>

#include "link/parts_room.hpp"

namespace fairlead::link {

class SegmentParts {
 public:
  static constexpr std::size_t kSegmentsMost = 4;

  /// `room` holds the bytes.
  explicit SegmentParts(PartsRoom& room) : room_(room) {}
  ~SegmentParts() {
    for (PartialSegment& segment : segments_) room_.forget(segment);
  }
  SegmentParts(const SegmentParts&) = delete;
  SegmentParts& operator=(const SegmentParts&) = delete;

  /// Adds a part. Returns the segment's payload once it is complete (valid until the next call for any peer), else an
  /// empty span.
  std::span<const std::byte> add(wire::Sequence sequence, const wire::Part& part);

 private:
  PartialSegment& place_of(wire::Sequence sequence, const wire::Part& part);

  PartsRoom& room_;
  std::array<PartialSegment, kSegmentsMost> segments_;
};

}  // namespace fairlead::link
