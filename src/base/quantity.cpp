#include "base/quantity.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

namespace fairlead::base {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kFractionMost = 1'000'000'000'000;  // limit of decimal places: finer than any unit

struct Suffix {
  std::string_view name;
  std::uint64_t size;
};

constexpr Suffix kBytes[] = {{"K", 1U << 10}, {"M", 1U << 20},   {"G", 1U << 30},   {"k", 1U << 10},  {"m", 1U << 20},
                             {"g", 1U << 30}, {"KiB", 1U << 10}, {"MiB", 1U << 20}, {"GiB", 1U << 30}};
constexpr Suffix kRates[] = {{"Kb/s", 125},   {"Mb/s", 125'000},   {"Gb/s", 125'000'000},
                             {"KB/s", 1'000}, {"MB/s", 1'000'000}, {"GB/s", 1'000'000'000}};
constexpr Suffix kTimes[] = {{"ns", 1},
                             {"us", 1'000},
                             {"ms", 1'000'000},
                             {"s", 1'000'000'000},
                             {"min", 60'000'000'000},
                             {"h", 3'600'000'000'000}};
constexpr Suffix kPercent[] = {{"%", 10'000}};

const Suffix* find(std::span<const Suffix> suffixes, std::string_view name) {
  const auto found = std::ranges::find(suffixes, name, &Suffix::name);
  return found == suffixes.end() ? nullptr : &*found;
}

std::span<const Suffix> suffixes_of(std::string_view unit) {
  if (unit == "bytes") return kBytes;
  if (unit == "bytes/s") return kRates;
  if (unit == "ppm") return kPercent;
  return find(kTimes, unit) != nullptr ? std::span<const Suffix>(kTimes) : std::span<const Suffix>();
}

/// Parses decimal places, in parts of `size`; nothing if they are not digits, or finer than one part.
std::optional<std::uint64_t> parse_fraction(std::string_view digits, std::uint64_t size) {
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
  digits = digits.substr(0, digits.find_last_not_of('0') + 1);
  std::uint64_t numerator = 0, denominator = 1;
  for (const char digit : digits) {
    if (denominator > kFractionMost) return std::nullopt;
    numerator = 10 * numerator + static_cast<std::uint64_t>(digit - '0');
    denominator *= 10;
  }
  if (numerator > kMost / size || numerator * size % denominator != 0) return std::nullopt;
  return numerator * size / denominator;
}

}  // namespace

std::optional<std::uint64_t> parse_quantity(std::string_view text, std::string_view unit) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view digits = text.substr(0, end), suffix = text.substr(end);
  const Suffix* const given = suffix.empty() ? nullptr : find(suffixes_of(unit), suffix);
  if (!suffix.empty() && given == nullptr) return std::nullopt;
  const Suffix* const of_time = find(kTimes, unit);
  const std::uint64_t divisor = of_time != nullptr && given != nullptr ? of_time->size : 1;
  const std::uint64_t size = given != nullptr ? given->size : 1;

  const std::size_t point = std::min(digits.find('.'), digits.size());
  std::uint64_t number = 0;
  const auto [stop, code] = std::from_chars(digits.data(), digits.data() + point, number);
  if (code != std::errc() || stop != digits.data() + point || number > kMost / size) return std::nullopt;
  const auto fraction = point == digits.size() ? 0 : parse_fraction(digits.substr(point + 1), size);
  if (!fraction || *fraction > kMost - number * size) return std::nullopt;
  const std::uint64_t parts = number * size + *fraction;
  return parts % divisor == 0 ? std::optional(parts / divisor) : std::nullopt;
}

bool has_unit(std::string_view text) {
  return !text.empty() && (text.back() < '0' || text.back() > '9');
}

std::string_view quantity_wanted(std::string_view unit) {
  if (unit == "bytes") return "a number, with K, M or G behind it if you like";
  if (find(kTimes, unit) != nullptr) return "a number, with ns, us, ms, s, min or h behind it if you like";
  return "a whole number";
}

}  // namespace fairlead::base
