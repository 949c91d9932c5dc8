#include "tests/include_table.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include <fmt/format.h>

namespace fairlead::tests {
namespace {

constexpr std::string_view kPublic = "fairlead/";
constexpr std::string_view kTopFolders[] = {"bench", "doors", "examples", "include", "sim", "src", "tests", "tools"};

std::string_view first_part(std::string_view path) {
  return path.substr(0, path.find('/'));
}

/// "src/link/room.hpp" belongs to link, "tests/install/consumer.cpp" to tests.
std::string_view folder_of(std::string_view path) {
  if (path.starts_with("src/")) path.remove_prefix(4);
  return first_part(path);
}

/// Tests may include files of higher layers, such as whole engines.
bool is_of_tests(std::string_view path) {
  return path.ends_with("_test.cpp") || path.ends_with("_for_tests.hpp");
}

/// "<verbs>" in a row stands for <fairlead/verbs.hpp> and all files of <fairlead/verbs/>.
std::string face_of(std::string_view target) {
  target.remove_prefix(kPublic.size());
  return fmt::format("<{}>", target.substr(0, target.find_first_of("./")));
}

std::string_view without_leading_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

/// Returns the rest of a preprocessor line "# NAME rest".
std::optional<std::string_view> directive(std::string_view line, std::string_view name) {
  line = without_leading_blanks(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = without_leading_blanks(line.substr(1));
  if (!line.starts_with(name)) return std::nullopt;
  return without_leading_blanks(line.substr(name.size()));
}

struct Include {
  std::string_view target;
  bool is_quoted = false;
};

std::optional<Include> include_of(std::string_view line) {
  const auto rest = directive(line, "include");
  if (!rest || rest->size() < 2) return std::nullopt;
  const bool is_quoted = rest->front() == '"';
  const auto end = rest->find(is_quoted ? '"' : '>', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return Include{rest->substr(1, end - 1), is_quoted};
}

/// Checks an include of a public C header, which may use three headers of the C library.
std::string c_objection(const Include& include) {
  constexpr std::string_view kStandard[] = {"stdbool.h", "stddef.h", "stdint.h"};
  if (!include.is_quoted && std::ranges::find(kStandard, include.target) != std::end(kStandard)) return {};
  return fmt::format("a public header for C may include stdbool.h, stddef.h and stdint.h only, not {}", include.target);
}

/// Only programs that use Asio include this header.
constexpr std::string_view kAsioHeader = "fairlead/net/asio.hpp";

std::string public_objection(std::string_view path, const Include& include) {
  if (!include.is_quoted && include.target == kAsioHeader)
    return fmt::format("no header includes {}, which needs Asio", include.target);
  const bool is_of_asio =
      include.target.starts_with("boost/asio/") || include.target.starts_with("asio/") || include.target == "fcntl.h";
  if (!include.is_quoted && path.ends_with(kAsioHeader) && is_of_asio) return {};
  if (!include.is_quoted && include.target.starts_with("fairlead/")) return {};
  if (!include.is_quoted && include.target.find_first_of("./") == std::string_view::npos) return {};
  return fmt::format("a public header may include the standard library and <fairlead/...> only, not {}",
                     include.target);
}

}  // namespace

Result<IncludeTable> IncludeTable::parse(std::string_view text) {
  IncludeTable table;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string folder;
    if (!(words >> folder) || folder.starts_with('#')) continue;
    std::vector<std::string> allowed{std::istream_iterator<std::string>(words), {}};
    if (!table.rows_.emplace(folder, std::move(allowed)).second)
      return std::unexpected(Error{Status::invalid, 0, fmt::format("two rows for folder {}: keep one", folder)});
  }
  return table;
}

bool IncludeTable::allows(std::string_view row_name, std::string_view target) const {
  const auto row = rows_.find(row_name);
  if (row == rows_.end()) return false;
  return std::ranges::any_of(row->second, [&](const std::string& name) {
    if (target.starts_with(kPublic)) return name == "*" || name == "<*>" || name == face_of(target);
    return name == "*" || name == target || name == first_part(target);
  });
}

std::string IncludeTable::objection(std::string_view path, std::string_view target) const {
  const std::string_view folder = folder_of(path);
  if (target.find("..") != std::string_view::npos || target.find('/') == std::string_view::npos)
    return fmt::format("write \"folder/file.hpp\" instead of \"{}\"", target);
  if (!rows_.contains(folder)) return fmt::format("folder {} has no row in the include table", folder);
  if (first_part(target) == folder || allows(folder, target) || allows("all", target)) return {};
  if (is_of_tests(path) && allows(fmt::format("{}:tests", folder), target)) return {};
  return fmt::format("{} may not include {}", folder, target);
}

std::vector<std::string> IncludeTable::violations(std::string_view path, std::string_view text) const {
  const bool is_public = path.starts_with("include/"), is_c = path.ends_with(".h");
  const auto folder = folder_of(path);
  std::vector<std::string> found;
  if (!is_public && !rows_.contains(folder))
    found.push_back(fmt::format("{}: folder {} has no row in the include table", path, folder));

  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::string what;
    if (const auto include = include_of(line)) {
      // Only quoted includes and .hpp files are ours: <queue> is the standard library's, <net/if.h> the system's.
      const bool is_ours = include->is_quoted || include->target.starts_with(kPublic) ||
                           (include->target.ends_with(".hpp") && rows_.contains(first_part(include->target)));
      if (is_public)
        what = is_c ? c_objection(*include) : public_objection(path, *include);
      else if (is_ours)
        what = objection(path, include->target);
    } else if (const auto macro = directive(line, "define"); is_public && macro) {
      if (!is_c)
        what = "a public header defines no macro";
      else if (!macro->starts_with("FAIRLEAD_"))
        what = "a macro of a public header begins with FAIRLEAD_";
    }
    if (!what.empty()) found.push_back(fmt::format("{}:{}: {}", path, number, what));
  }
  return found;
}

std::vector<std::string> IncludeTable::violations_below(const std::filesystem::path& project,
                                                        std::size_t& files) const {
  std::vector<std::string> found;
  files = 0;
  for (const auto top : kTopFolders) {
    if (!std::filesystem::exists(project / top)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(project / top)) {
      const auto extension = entry.path().extension();
      const bool is_c_header = extension == ".h" && top == "include";
      if (extension != ".hpp" && extension != ".cpp" && !is_c_header) continue;
      ++files;
      std::ifstream stream(entry.path());
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      std::ranges::move(violations(entry.path().lexically_relative(project).generic_string(), text),
                        std::back_inserter(found));
    }
  }
  return found;
}

}  // namespace fairlead::tests
