#include "queue/event_queue.hpp"

#include <sys/mman.h>

#include <cstring>

namespace fairlead::queue {
namespace {

// From this size on, a segment is a mapping of its own. free() may keep such a block: after the first that it has
// unmapped, malloc() takes others of that size from the heap.
constexpr std::size_t kMappedLeast = 64 << 10;

std::byte* allocate_segment(std::size_t bytes) {
  if (bytes < kMappedLeast)
    return static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kLinePairBytes}, std::nothrow));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED ? static_cast<std::byte*>(memory) : nullptr;
}

}  // namespace

OwnedSegment::OwnedSegment(std::size_t bytes) : memory_(allocate_segment(bytes), ReleaseSegment{bytes}) {
  if (memory_) std::memset(memory_.get(), 0, bytes);  // touched here, so that the first lap takes no page faults
}

void ReleaseSegment::operator()(std::byte* memory) const noexcept {
  if (bytes >= kMappedLeast) {
    ::munmap(memory, bytes);
  } else {
    ::operator delete(memory, std::align_val_t{kLinePairBytes});
  }
}

std::optional<SegmentNumber> OwnedSegments::add(std::size_t bytes) {
  if (used_ == kSegmentsMax) return std::nullopt;
  OwnedSegment segment(bytes);
  if (segment.span().empty()) return std::nullopt;
  segments_[used_] = std::move(segment);
  return SegmentNumber{used_++};
}

}  // namespace fairlead::queue
