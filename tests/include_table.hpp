#pragma once
// Checks the includes of all sources against tests/include_table.txt. Public headers may include only the standard
// library and other public headers, and define no macros, because they become part of the user's file.

#include <fairlead/error.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::tests {

class IncludeTable {
 public:
  static Result<IncludeTable> parse(std::string_view text);

  /// Returns the violations in one file as "path:line: what". `path` is relative to the project's folder.
  std::vector<std::string> violations(std::string_view path, std::string_view text) const;

  /// Returns the violations in all C++ files of the project. Sets `files` to the number of files checked.
  std::vector<std::string> violations_below(const std::filesystem::path& project, std::size_t& files) const;

 private:
  bool allows(std::string_view row, std::string_view target) const;
  std::string objection(std::string_view path, std::string_view target) const;

  std::map<std::string, std::vector<std::string>, std::less<>> rows_;  // folder -> folders and files it may include
};

}  // namespace fairlead::tests
