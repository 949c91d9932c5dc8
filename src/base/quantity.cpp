#include "base/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace fairlead::base {
namespace {

struct Suffix {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array<Suffix, 6> kBytes{
    {{"K", 1U << 10}, {"M", 1U << 20}, {"G", 1U << 30}, {"k", 1U << 10}, {"m", 1U << 20}, {"g", 1U << 30}}};
constexpr std::array<Suffix, 5> kTimes{
    {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"min", 60'000'000'000}}};

template <typename Suffixes>
const Suffix* find(const Suffixes& suffixes, std::string_view name) {
  const auto found = std::ranges::find(suffixes, name, &Suffix::name);
  return found == suffixes.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::uint64_t> parse_quantity(std::string_view text, std::string_view unit) {
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc()) return std::nullopt;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (suffix.empty()) return number;
  const Suffix* const of_unit = find(kTimes, unit);
  const Suffix* const given = of_unit != nullptr ? find(kTimes, suffix)
                              : unit == "bytes"  ? find(kBytes, suffix)
                                                 : nullptr;
  if (given == nullptr || number > std::numeric_limits<std::uint64_t>::max() / given->size) return std::nullopt;
  const std::uint64_t divisor = of_unit != nullptr ? of_unit->size : 1;
  return number * given->size % divisor == 0 ? std::optional(number * given->size / divisor) : std::nullopt;
}

std::string_view quantity_wanted(std::string_view unit) {
  if (unit == "bytes") return "a whole number, with K, M or G behind it if you like";
  if (find(kTimes, unit) != nullptr) return "a whole number, with ns, us, ms, s or min behind it if you like";
  return "a whole number";
}

}  // namespace fairlead::base
