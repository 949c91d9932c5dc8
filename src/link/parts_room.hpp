#pragma once
// Memory for segments that arrive in parts, of all peers together. Only received parts take memory. Beyond the bound
// the segment that was begun first is dropped, of any sender: the parts of an honest sender arrive within a round trip.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <boost/intrusive/list.hpp>

#include "link/message.hpp"
#include "wire/part.hpp"
#include "wire/sequence.hpp"

namespace fairlead::link {

/// A segment of which some parts have arrived.
struct PartialSegment {
  ListHook hook;  // in the room
  wire::Sequence sequence;
  std::uint32_t count = 0;  // number of its parts; 0: this entry is free
  std::uint32_t payload_bytes = 0;
  std::uint32_t part_bytes = 0;
  std::uint64_t arrived = 0;                            // bit i: part i has arrived
  std::uint64_t age = 0;                                // rises with each segment begun
  std::vector<std::byte> held;                          // the parts, in the order of their arrival
  std::array<std::uint32_t, wire::kPartsMost> begin{};  // offset of part i in `held`
};

class PartsRoom {
 public:
  explicit PartsRoom(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// Starts a new segment in this entry; its previous contents are dropped.
  void begin(PartialSegment& segment, wire::Sequence sequence, const wire::Part& part);
  void add(PartialSegment& segment, const wire::Part& part);
  void forget(PartialSegment& segment);
  /// Returns the payload of a complete segment, in order; valid until the next call.
  std::span<const std::byte> join(const PartialSegment& segment);

  std::uint64_t bytes_held() const { return bytes_held_; }
  /// Returns how many segments were dropped for want of space since the last call.
  std::uint64_t take_dropped();

 private:
  using SegmentsInTurn =
      boost::intrusive::list<PartialSegment,
                             boost::intrusive::member_hook<PartialSegment, ListHook, &PartialSegment::hook>,
                             boost::intrusive::constant_time_size<false>>;

  std::uint64_t bytes_max_, bytes_held_ = 0, begun_ = 0, dropped_ = 0;
  SegmentsInTurn begun_in_turn_;
  std::unique_ptr<std::byte[]> joined_;
};

}  // namespace fairlead::link
