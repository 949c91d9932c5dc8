#include "link/parts_room.hpp"

#include <algorithm>
#include <utility>

#include "wire/segment.hpp"

namespace fairlead::link {

void PartsRoom::begin(PartialSegment& segment, wire::Sequence sequence, const wire::Part& part) {
  forget(segment);
  segment.sequence = sequence;
  segment.count = part.count;
  segment.payload_bytes = part.payload_bytes;
  segment.part_bytes = part.part_bytes();
  segment.age = ++begun_;
  begun_in_turn_.push_back(segment);
}

void PartsRoom::add(PartialSegment& segment, const wire::Part& part) {
  const std::uint64_t bit = std::uint64_t{1} << part.index;
  if ((segment.arrived & bit) != 0) return;
  const std::size_t before = segment.held.capacity(), begin = segment.held.size();
  segment.held.insert(segment.held.end(), part.bytes.begin(), part.bytes.end());
  segment.arrived |= bit;
  segment.begin[part.index] = static_cast<std::uint32_t>(begin);
  bytes_held_ += segment.held.capacity() - before;
  while (bytes_held_ > bytes_max_ && &begun_in_turn_.front() != &segment) {
    forget(begun_in_turn_.front());
    ++dropped_;
  }
}

void PartsRoom::forget(PartialSegment& segment) {
  segment.hook.unlink();
  bytes_held_ -= segment.held.capacity();
  std::vector<std::byte>().swap(segment.held);  // frees its memory too
  segment.count = 0;
  segment.arrived = 0;
  segment.age = 0;
}

std::span<const std::byte> PartsRoom::join(const PartialSegment& segment) {
  if (!joined_) joined_ = std::make_unique_for_overwrite<std::byte[]>(wire::kDatagramSizeMost);
  for (std::uint32_t i = 0; i < segment.count; ++i) {
    const std::uint32_t offset = i * segment.part_bytes;
    const std::uint32_t length = std::min(segment.part_bytes, segment.payload_bytes - offset);
    std::copy_n(segment.held.begin() + segment.begin[i], length, joined_.get() + offset);
  }
  return {joined_.get(), segment.payload_bytes};
}

std::uint64_t PartsRoom::take_dropped() {
  return std::exchange(dropped_, 0);
}

}  // namespace fairlead::link
