#pragma once
// Numbers as people write them, with or without a unit: "4M" bytes, "5s" or "1.5ms", "0.25%", "64".

#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead::base {

/// Parses a number in `unit`: "bytes" allows K, M and G (powers of 1024, in either case) and KiB, MiB and GiB.
/// "bytes/s" allows Kb/s, Mb/s and Gb/s (bits) and KB/s, MB/s and GB/s (powers of 1000). "ns", "us", "ms" and "s" allow
/// each other, "min" and "h"; "ppm" (millionths) allows %; any other unit allows none. Returns nothing if it is no
/// number, not whole in that unit, or exceeds 64 bits.
std::optional<std::uint64_t> parse_quantity(std::string_view text, std::string_view unit);

/// Describes what parse_quantity() accepts: "a number, with K, M or G behind it if you like".
std::string_view quantity_wanted(std::string_view unit);

/// Returns whether the text ends with something other than a digit, for values that need a unit.
bool has_unit(std::string_view text);

}  // namespace fairlead::base
