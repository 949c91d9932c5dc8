#include "sim/quantity.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "base/quantity.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kMillion = 1'000'000;

/// Parses a number that has a unit, or is 0.
Result<std::uint64_t> parse(std::string_view text, std::string_view unit, std::string_view examples) {
  const auto number = base::parse_quantity(text, unit);
  if (number && (*number == 0 || unit == "bytes" || base::has_unit(text))) return *number;
  return std::unexpected(Error{Status::invalid, 0, fmt::format("'{}': want a number like {}", text, examples)});
}

}  // namespace

Result<base::Duration> parse_duration(std::string_view text) {
  const auto number = parse(text, "ns", "10us, 5ms, 30s");
  if (!number) return std::unexpected(number.error());
  if (*number > static_cast<std::uint64_t>(base::Duration::max().count()))
    return std::unexpected(Error{Status::invalid, 0, fmt::format("'{}' is longer than 292 years", text)});
  return base::Duration(static_cast<std::int64_t>(*number));
}

Result<double> parse_share(std::string_view text) {
  const auto number = parse(text, "ppm", "1% or 0.05%");
  if (!number) return std::unexpected(number.error());
  if (*number > kMillion)
    return std::unexpected(Error{Status::invalid, 0, fmt::format("'{}' is more than all: want 0% to 100%", text)});
  return static_cast<double>(*number) / kMillion;
}

Result<std::uint64_t> parse_bytes_per_second(std::string_view text) {
  return parse(text, "bytes/s", "10Gb/s (bits) or 1GB/s (bytes)");
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  return parse(text, "bytes", "1500, 64KiB, 2MiB");
}

std::string to_text(base::Duration duration) {
  const auto nanoseconds = static_cast<double>(duration.count());
  if (std::abs(nanoseconds) >= 1e9) return fmt::format("{:.6f} s", nanoseconds / 1e9);
  if (std::abs(nanoseconds) >= 1e6) return fmt::format("{:.6f} ms", nanoseconds / 1e6);
  return fmt::format("{:.3f} us", nanoseconds / 1e3);
}

}  // namespace fairlead::sim
