#pragma once
// Numbers as people write them, with or without a unit: "4M" of bytes, "5s" or "1.5ms" of time, "0.25%", "64".

#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead::base {

/// In `unit`: "bytes" knows K, M and G (powers of 1024, in either case); "ns", "us", "ms" and "s" know each other and
/// "min"; "ppm" (millionths) knows %; any other knows none. None if it is no number, not whole in that unit, or larger
/// than 64 bits.
std::optional<std::uint64_t> parse_quantity(std::string_view text, std::string_view unit);

/// What parse_quantity() takes, for people: "a number, with K, M or G behind it if you like".
std::string_view quantity_wanted(std::string_view unit);

/// Whether something that is no digit stands at its end: where a number alone would say nothing.
bool has_unit(std::string_view text);

}  // namespace fairlead::base
