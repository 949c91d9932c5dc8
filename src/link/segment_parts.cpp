#include "link/segment_parts.hpp"

#include <algorithm>

namespace fairlead::link {

/// Returns the segment's entry, or the one that was begun first.
PartialSegment& SegmentParts::place_of(wire::Sequence sequence, const wire::Part& part) {
  const auto known = std::ranges::find_if(
      segments_, [&](const PartialSegment& segment) { return segment.count != 0 && segment.sequence == sequence; });
  PartialSegment& place =
      known != segments_.end() ? *known : *std::ranges::min_element(segments_, {}, &PartialSegment::age);
  // The sender may have cut the segment again, if the path's MTU has become still smaller.
  const bool is_same =
      known != segments_.end() && place.part_bytes == part.part_bytes() && place.payload_bytes == part.payload_bytes;
  if (!is_same) room_.begin(place, sequence, part);
  return place;
}

std::span<const std::byte> SegmentParts::add(wire::Sequence sequence, const wire::Part& part) {
  PartialSegment& place = place_of(sequence, part);
  room_.add(place, part);
  const std::uint64_t all = ~std::uint64_t{0} >> (wire::kPartsMost - place.count);
  if (place.arrived != all) return {};
  const std::span<const std::byte> whole = room_.join(place);
  room_.forget(place);
  return whole;
}

}  // namespace fairlead::link
