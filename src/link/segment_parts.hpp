#pragma once
// Segments that come in parts, until they are whole. Few at a time, each with a buffer of its own: a sender begins the
// next one when the one before is out, so who needs more has lost something, and the oldest makes room.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "wire/part.hpp"
#include "wire/sequence.hpp"

namespace fairlead::link {

class SegmentParts {
 public:
  static constexpr std::size_t kSegmentsMost = 4;

  /// Takes a part; the segment's payload if it is whole now (valid until the next call), else nothing.
  std::span<const std::byte> add(wire::Sequence sequence, const wire::Part& part);

 private:
  struct Place {
    wire::Sequence sequence;
    std::uint32_t count = 0;  // 0: free
    std::uint32_t payload_bytes = 0;
    std::uint32_t part_bytes = 0;
    std::uint64_t arrived = 0;  // bit i: part i
    std::uint64_t age = 0;
    std::unique_ptr<std::byte[]> bytes;
  };

  Place& place_of(wire::Sequence sequence, const wire::Part& part);

  std::array<Place, kSegmentsMost> places_;
  std::uint64_t begun_ = 0;
};

}  // namespace fairlead::link
