#include "queue/event_queue.hpp"

#include <cstring>

namespace fairlead::queue {

OwnedSegment::OwnedSegment(std::size_t bytes)
    : memory_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kLinePairBytes}, std::nothrow))) {
  if (memory_ == nullptr) return;
  std::memset(memory_.get(), 0, bytes);  // touched here, so that the first lap takes no page faults
  bytes_ = bytes;
}

void OwnedSegment::Release::operator()(std::byte* memory) const noexcept {
  ::operator delete(memory, std::align_val_t{kLinePairBytes});
}

std::optional<SegmentNumber> OwnedSegments::add(std::size_t bytes) {
  if (used_ == kSegmentsMax) return std::nullopt;
  OwnedSegment segment(bytes);
  if (segment.span().empty()) return std::nullopt;
  segments_[used_] = std::move(segment);
  return SegmentNumber{used_++};
}

}  // namespace fairlead::queue
