#pragma once
// The sender's half of the window: the segments between first transmission and ACK, by sequence. The ring's size is a
// power of two. It is allocated for the first segment and freed when the peer falls quiet.
//
//   acked_to() <= oldest() <= next(), next() - oldest() <= capacity
//   acked_to: the highest cumulative ACK seen; oldest: the first segment that neither ACK nor bitmap has acknowledged.

#include <cstdint>
#include <memory>

#include "link/segment.hpp"

namespace fairlead::link {

class SendWindow {
 public:
  /// Empties the window; the next segment will be `first`. Capacity: a power of two.
  void open(wire::Sequence first, std::uint32_t capacity);

  wire::Sequence next() const { return next_; }
  wire::Sequence oldest() const { return oldest_; }
  wire::Sequence acked_to() const { return acked_to_; }
  std::uint32_t span() const { return static_cast<std::uint32_t>(wire::distance(oldest_, next_)); }
  std::uint32_t in_flight() const { return in_flight_; }
  bool is_full() const { return span() == capacity_; }
  bool has_ring() const { return ring_ != nullptr; }

  /// Allocates the ring, before the first put(). Returns false if there is no memory.
  bool reserve(std::uint32_t capacity);
  /// Adds a segment and assigns its sequence.
  void put(Segment& segment);
  /// Puts a segment of the previous program in this process in its place, in the order of sequences. The window was
  /// opened at its next(), and reserved. Returns false if there is no such place.
  bool restore(Segment& segment, wire::Sequence sequence);
  /// Returns the segment with this sequence, or null if it is not in the window (any more).
  Segment* find(wire::Sequence sequence) const;
  /// Removes an acknowledged segment.
  void remove(const Segment& segment);
  void set_acked_to(wire::Sequence sequence) { acked_to_ = sequence; }
  void release_ring();

 private:
  wire::Sequence next_, oldest_, acked_to_;
  std::uint32_t capacity_ = 0;
  std::uint32_t in_flight_ = 0;
  std::unique_ptr<Segment*[]> ring_;
};

}  // namespace fairlead::link
