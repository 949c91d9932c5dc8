#include "link/send_window.hpp"

#include <bit>
#include <new>

#include "base/ensure.hpp"

namespace fairlead::link {

void SendWindow::open(wire::Sequence first, std::uint32_t capacity) {
  ENSURE(std::has_single_bit(capacity), "a window of {} segments", capacity);
  ENSURE(in_flight_ == 0, "{} segments in flight", in_flight_);
  next_ = oldest_ = acked_to_ = first;
  if (capacity != capacity_) ring_.reset();
  capacity_ = capacity;
}

bool SendWindow::reserve(std::uint32_t capacity) {
  if (ring_) [[likely]]
    return true;
  ring_.reset(new (std::nothrow) Segment*[capacity]());
  if (!ring_) return false;
  capacity_ = capacity;
  return true;
}

void SendWindow::put(Segment& segment) {
  ENSURE(!is_full(), "the window of {} segments is full", capacity_);
  ENSURE(ring_ != nullptr, "nothing was reserved for {} segments", capacity_);
  segment.sequence = next_;
  ring_[next_.value & (capacity_ - 1)] = &segment;
  ++next_;
  ++in_flight_;
}

bool SendWindow::restore(Segment& segment, wire::Sequence sequence) {
  const std::uint32_t back = count_between(sequence, next_);
  Segment*& place = ring_[sequence.value & (capacity_ - 1)];
  // The first one is the oldest.
  if (back == 0 || back > capacity_ || place != nullptr || (in_flight_ != 0 && !is_between(oldest_, next_, sequence)))
    return false;
  if (in_flight_ == 0) oldest_ = acked_to_ = sequence;
  segment.sequence = sequence;
  place = &segment;
  ++in_flight_;
  return true;
}

Segment* SendWindow::find(wire::Sequence sequence) const {
  if (wire::distance(oldest_, sequence) < 0 || wire::distance(sequence, next_) <= 0) return nullptr;
  return ring_[sequence.value & (capacity_ - 1)];
}

void SendWindow::remove(const Segment& segment) {
  Segment*& place = ring_[segment.sequence.value & (capacity_ - 1)];
  ENSURE(place == &segment, "segment {} is not in the window", segment.sequence.value);
  place = nullptr;
  --in_flight_;
  while (oldest_ != next_ && ring_[oldest_.value & (capacity_ - 1)] == nullptr) ++oldest_;
}

void SendWindow::release_ring() {
  if (in_flight_ == 0) ring_.reset();
}

}  // namespace fairlead::link
