#pragma once
// Parses the numbers of scenario files, in the grammar of all settings (base/quantity.hpp): "10us", "1%", "10Gb/s",
// "64KiB". All but a count of bytes need a unit, unless they are 0.

#include <cstdint>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

#include "base/time.hpp"

namespace fairlead::sim {

/// "0", "250ns", "10us", "1.5ms", "30s", "5min", "24h".
Result<base::Duration> parse_duration(std::string_view text);
/// "1%", "0.05%", "100%"; at least 0.0001%.
Result<double> parse_share(std::string_view text);
/// "10Gb/s", "100Mb/s" (bits), "1GB/s" (bytes); "0" is infinitely fast.
Result<std::uint64_t> parse_bytes_per_second(std::string_view text);
/// "1500", "64KiB", "2MiB".
Result<std::uint64_t> parse_bytes(std::string_view text);

/// Formats a duration for people, in a suitable unit: "12.345678 ms".
std::string to_text(base::Duration duration);

}  // namespace fairlead::sim
