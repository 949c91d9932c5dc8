#pragma once
// Serial numbers (RFC 1982): 32 bits that wrap. Two of them are compared by their distance, which is right as long as
// they are less than 2^31 apart; whether one lies in a window is right for a window of any size. Each kind of number is
// a type of its own, so that none is compared with one of another kind.

#include <cstdint>

namespace fairlead::wire {

template <typename Kind>
struct SerialNumber {
  std::uint32_t value = 0;

  constexpr bool operator==(const SerialNumber&) const = default;
  constexpr SerialNumber& operator++() {
    ++value;
    return *this;
  }
};

/// How far `to` lies after `from`; negative if before.
template <typename Kind>
constexpr std::int32_t distance(SerialNumber<Kind> from, SerialNumber<Kind> to) {
  return static_cast<std::int32_t>(to.value - from.value);
}
template <typename Kind>
constexpr bool is_before(SerialNumber<Kind> one, SerialNumber<Kind> other) {
  return distance(one, other) > 0;
}
/// Numbers in the window of `begin`, begin + 1, ... up to the one before `end`.
template <typename Kind>
constexpr std::uint32_t count_between(SerialNumber<Kind> begin, SerialNumber<Kind> end) {
  return end.value - begin.value;
}
/// Whether `number` is one of them.
template <typename Kind>
constexpr bool is_between(SerialNumber<Kind> begin, SerialNumber<Kind> end, SerialNumber<Kind> number) {
  return count_between(begin, number) < count_between(begin, end);
}

template <typename Kind>
constexpr SerialNumber<Kind> operator+(SerialNumber<Kind> number, std::uint32_t steps) {
  return {number.value + steps};
}
template <typename Kind>
constexpr SerialNumber<Kind> operator-(SerialNumber<Kind> number, std::uint32_t steps) {
  return {number.value - steps};
}

/// A segment's number; a window of at most 4096 keeps those that are compared near to each other.
using Sequence = SerialNumber<struct OfSegments>;

}  // namespace fairlead::wire
