#pragma once
// Rows of text under headings, columns aligned: the first to the left, figures to the right.

#include <cstddef>
#include <string>
#include <vector>

namespace fairlead::tools {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings);

  /// Cells that are missing stay empty.
  void add(std::vector<std::string> row);
  /// Aligns this column to the left as well.
  void align_left(std::size_t column);
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the headings are the first
  std::vector<bool> is_left_;
};

}  // namespace fairlead::tools
