#include "engine/unknown_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/shown.hpp"
#include "engine/engine_options.hpp"

namespace fairlead::engine {
namespace {

constexpr std::string_view kOurs = "FAIRLEAD_";
constexpr VariableRow kOthers[] = {
    {base::Settings::kFileVariable, "a file", "settings in TOML, for what the environment does not set"},
    {"FAIRLEAD_DEVICE", "addresses with commas",
     "addresses of this host that are RDMA devices; default: all, IPv4 first"},
    {"FAIRLEAD_DEVICES", "1 to 16", "number of devices that an unmodified program sees"},
    {"FAIRLEAD_EXPLAIN", "1",
     "an unmodified program prints a report when it ends, with the causes of failed completions"},
    {"FAIRLEAD_PERSONALITY", "roce or ib", "the link that an unmodified program sees, RoCE or InfiniBand"},
};
constexpr std::string_view kFamilies[] = {"FAIRLEAD_AM_", "FAIRLEAD_TEST_"};
constexpr std::size_t kNameMax = 64;

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const VariableRow& row : kOthers) names.push_back(row.name);
  for (const OptionRow& row : option_table()) names.push_back(row.environment);
  for (const FormerOption& former : former_options()) names.push_back(former.environment);
  for (const WordOptionRow& row : word_option_table()) names.push_back(row.environment);
  return names;
}

std::vector<std::string> known_names_in_file() {
  std::vector<std::string> names;
  for (const std::string_view variable : known_names())
    if (variable != base::Settings::kFileVariable) names.push_back(base::Settings::name_in_file(variable));
  return names;
}

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

/// Returns the edit distance. If `name` resembles the beginning of a longer known name, the rest of that name costs one
/// edit.
std::size_t distance(std::string_view name, std::string_view known) {
  const std::size_t edits = edit_distance(name, known);
  return known.size() > name.size() ? std::min(edits, edit_distance(name, known.substr(0, name.size())) + 1) : edits;
}

/// Returns "NAME sets nothing", and "did you mean ...?" if the distance to a known name is at most one more than a
/// third of its letters.
template <typename Names>
std::string complaint(std::string_view name, const Names& known, std::size_t letters) {
  std::string line = fmt::format("{} sets nothing", base::shown(name.substr(0, kNameMax)));
  if (name.size() <= kNameMax) {
    const auto nearest = std::ranges::min_element(known, {}, [&](const auto& one) { return distance(name, one); });
    if (distance(name, *nearest) <= letters / 3 + 1) line += fmt::format(": did you mean {}?", *nearest);
  }
  return line + " (`fairlead options` lists the settings)";
}

}  // namespace

std::span<const VariableRow> other_variables() noexcept {
  return kOthers;
}

std::vector<std::string> unknown_variables(std::span<const std::string_view> environment) {
  const std::vector<std::string_view> known = known_names();
  std::vector<std::string> lines;
  for (const std::string_view entry : environment) {
    const std::string_view name = entry.substr(0, entry.find('='));
    const bool is_of_family = std::ranges::any_of(kFamilies, [&](auto family) { return name.starts_with(family); });
    if (!name.starts_with(kOurs) || is_of_family || std::ranges::find(known, name) != known.end()) continue;
    lines.push_back(complaint(name, known, name.size() - kOurs.size()));
  }
  return lines;
}

Result<> check_names(const base::SettingsFile& file) {
  const std::vector<std::string> known = known_names_in_file();
  for (const base::FileSetting& one : file.all()) {
    if (std::ranges::find(known, one.name) != known.end()) continue;
    return std::unexpected(
        Error{Status::invalid, 0, fmt::format("{}: {}", one.where, complaint(one.name, known, one.name.size()))});
  }
  return {};
}

}  // namespace fairlead::engine
