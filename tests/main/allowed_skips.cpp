#include "tests/main/allowed_skips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <ranges>

namespace fairlead::tests {
namespace {

bool fits(std::string_view pattern, std::string_view test) {
  if (!pattern.ends_with('*')) return test == pattern;
  return test.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

Result<AllowedSkips> AllowedSkips::parse(std::string_view text) {
  constexpr std::string_view kBetween = ": ";
  AllowedSkips skips;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part.begin(), part.end());
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t end = line.find(kBetween);
    if (end == std::string_view::npos || end == 0 || end + kBetween.size() == line.size())
      return std::unexpected(Error{Status::invalid, 0, fmt::format("'{}' is not NAME: REASON", line)});
    skips.rows_.push_back({std::string(line.substr(0, end)), std::string(line.substr(end + kBetween.size()))});
  }
  return skips;
}

Result<AllowedSkips> AllowedSkips::of_file(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) return std::unexpected(Error{Status::invalid, errno, fmt::format("cannot read {}", path)});
  return parse(std::string{std::istreambuf_iterator<char>(stream), {}});
}

bool AllowedSkips::allows(std::string_view test, std::string_view reason) const {
  return std::ranges::any_of(rows_, [&](const Row& row) { return fits(row.test, test) && row.reason == reason; });
}

}  // namespace fairlead::tests
