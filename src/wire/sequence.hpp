#pragma once
// Serial numbers (RFC 1982): 32 bits that wrap. Two numbers are compared by their distance, which is right while they
// are less than 2^31 apart. is_between() is right for a window of any size. Each kind of number has its own type, so
// that different kinds cannot be compared.

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

/// Steps from `from` to `to`; negative if `to` is before `from`.
template <typename Kind>
constexpr std::int32_t distance(SerialNumber<Kind> from, SerialNumber<Kind> to) {
  return static_cast<std::int32_t>(to.value - from.value);
}
template <typename Kind>
constexpr bool is_before(SerialNumber<Kind> one, SerialNumber<Kind> other) {
  return distance(one, other) > 0;
}
/// Size of the window [begin, end).
template <typename Kind>
constexpr std::uint32_t count_between(SerialNumber<Kind> begin, SerialNumber<Kind> end) {
  return end.value - begin.value;
}
/// Returns whether `number` is in [begin, end).
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

/// Sequence of a segment. A window of at most 4096 keeps compared sequences near to each other.
using Sequence = SerialNumber<struct OfSegments>;

}  // namespace fairlead::wire
