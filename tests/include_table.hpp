#pragma once
// Who may include whom (tests/include_table.txt), held against the sources of the tree. Public headers have one rule
// more: the standard library and other public headers only, and no macros, for they become part of the user's file.

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

  /// What one file does against the table, each as "path:line: what"; `path` is relative to the project's folder.
  std::vector<std::string> violations(std::string_view path, std::string_view text) const;

  /// The same for all C++ files below a project's folder. `files` counts what was looked at.
  std::vector<std::string> violations_below(const std::filesystem::path& project, std::size_t& files) const;

 private:
  bool allows(std::string_view row, std::string_view target) const;
  std::string objection(std::string_view path, std::string_view target) const;

  std::map<std::string, std::vector<std::string>, std::less<>> rows_;  // folder -> folders and files it may include
};

}  // namespace fairlead::tests
