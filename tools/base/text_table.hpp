#pragma once
// Rows of text under headings. The first column is aligned to the left, the others to the right.

#include <cstddef>
#include <string>
#include <vector>

namespace fairlead::tools {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings);

  /// Missing cells are empty.
  void add(std::vector<std::string> row);
  /// Aligns this column to the left, too.
  void align_left(std::size_t column);
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first row contains the headings
  std::vector<bool> is_left_;
};

}  // namespace fairlead::tools
