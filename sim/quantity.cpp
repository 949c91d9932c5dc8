#include "sim/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <utility>

namespace fairlead::sim {
namespace {

struct Unit {
  std::string_view name;
  double factor = 1;
};

Result<double> parse(std::string_view text, std::initializer_list<Unit> units, std::string_view examples) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (code == std::errc() && std::isfinite(number) && number >= 0) {
    if (suffix.empty() && number == 0) return 0.0;
    for (const Unit& unit : units) {
      if (unit.name == suffix) return number * unit.factor;
    }
  }
  return std::unexpected(
      Error{Status::invalid, 0, fmt::format("'{}' is not understood: write it like {}", text, examples)});
}

Result<std::uint64_t> whole(const Result<double>& number) {
  if (!number) return std::unexpected(number.error());
  return static_cast<std::uint64_t>(std::llround(*number));
}

}  // namespace

Result<base::Duration> parse_duration(std::string_view text) {
  const auto nanoseconds = whole(
      parse(text, {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}, "10us, 5ms, 30s"));
  if (!nanoseconds) return std::unexpected(nanoseconds.error());
  return base::Duration(static_cast<std::int64_t>(*nanoseconds));
}

Result<double> parse_share(std::string_view text) {
  auto share = parse(text, {{"%", 0.01}, {"", 1}}, "1% or 0.01");
  if (share && *share > 1)
    return std::unexpected(Error{Status::invalid, 0, fmt::format("'{}' is more than all: want 0% to 100%", text)});
  return share;
}

Result<std::uint64_t> parse_bytes_per_second(std::string_view text) {
  return whole(parse(text,
                     {{"Kb/s", 125}, {"Mb/s", 125e3}, {"Gb/s", 125e6}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}},
                     "10Gb/s (bits) or 1GB/s (bytes)"));
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  return whole(parse(text, {{"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}}, "1500, 64KiB, 2MiB"));
}

std::string to_text(base::Duration duration) {
  const auto nanoseconds = static_cast<double>(duration.count());
  if (std::abs(nanoseconds) >= 1e9) return fmt::format("{:.6f} s", nanoseconds / 1e9);
  if (std::abs(nanoseconds) >= 1e6) return fmt::format("{:.6f} ms", nanoseconds / 1e6);
  return fmt::format("{:.3f} us", nanoseconds / 1e3);
}

}  // namespace fairlead::sim
