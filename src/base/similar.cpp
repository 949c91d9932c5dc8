#include "base/similar.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace fairlead::base {
namespace {

constexpr std::size_t kNameMax = 64;

/// Returns the Levenshtein distance: the number of characters to insert, remove or replace.
std::size_t edit_distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t change = diagonal + (one[i - 1] != other[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

std::size_t distance(std::string_view name, std::string_view known) {
  const std::size_t edits = edit_distance(name, known);
  return known.size() > name.size() ? std::min(edits, edit_distance(name, known.substr(0, name.size())) + 1) : edits;
}

}  // namespace

std::optional<std::string_view> most_similar(std::string_view name, std::span<const std::string_view> known,
                                             std::size_t letters) {
  if (name.empty() || name.size() > kNameMax || known.empty()) return std::nullopt;
  const auto nearest = std::ranges::min_element(known, {}, [&](std::string_view one) { return distance(name, one); });
  return distance(name, *nearest) <= letters / 3 + 1 ? std::optional(*nearest) : std::nullopt;
}

}  // namespace fairlead::base
