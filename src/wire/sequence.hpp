#pragma once
// A segment's number: 32 bits that wrap. Two of them are compared by their distance, which is right as long as they
// are less than 2^31 apart; a window of at most 4096 keeps them so.

#include <cstdint>

namespace fairlead::wire {

struct Sequence {
  std::uint32_t value = 0;

  constexpr bool operator==(const Sequence&) const = default;
  constexpr Sequence& operator++() {
    ++value;
    return *this;
  }
};

/// How far `to` lies after `from`; negative if before.
constexpr std::int32_t distance(Sequence from, Sequence to) {
  return static_cast<std::int32_t>(to.value - from.value);
}

constexpr Sequence operator+(Sequence sequence, std::uint32_t steps) {
  return {sequence.value + steps};
}

}  // namespace fairlead::wire
