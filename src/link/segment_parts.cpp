#include "link/segment_parts.hpp"

#include <algorithm>

namespace fairlead::link {

/// The segment's place, or the one that was begun longest ago.
SegmentParts::Place& SegmentParts::place_of(wire::Sequence sequence, const wire::Part& part) {
  const auto known =
      std::ranges::find_if(places_, [&](const Place& place) { return place.count != 0 && place.sequence == sequence; });
  Place& place = known != places_.end() ? *known : *std::ranges::min_element(places_, {}, &Place::age);
  // Its sender may have cut it anew, if the path has become narrower still.
  if (known != places_.end() && place.part_bytes == part.part_bytes() && place.payload_bytes == part.payload_bytes)
    return place;
  place = {.sequence = sequence,
           .count = part.count,
           .payload_bytes = part.payload_bytes,
           .part_bytes = part.part_bytes(),
           .arrived = 0,
           .age = ++begun_,
           .bytes = std::make_unique<std::byte[]>(part.payload_bytes)};
  return place;
}

std::span<const std::byte> SegmentParts::add(wire::Sequence sequence, const wire::Part& part) {
  Place& place = place_of(sequence, part);
  std::ranges::copy(part.bytes, place.bytes.get() + part.offset());
  place.arrived |= std::uint64_t{1} << part.index;
  const std::uint64_t all = ~std::uint64_t{0} >> (wire::kPartsMost - place.count);
  if (place.arrived != all) return {};
  place.count = 0;
  place.age = 0;
  return {place.bytes.get(), place.payload_bytes};
}

}  // namespace fairlead::link
