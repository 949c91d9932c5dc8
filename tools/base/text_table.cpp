#include "tools/base/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fairlead::tools {

TextTable::TextTable(std::vector<std::string> headings) : is_left_(headings.size(), false) {
  rows_.push_back(std::move(headings));
  align_left(0);
}

void TextTable::add(std::vector<std::string> row) {
  row.resize(is_left_.size());
  rows_.push_back(std::move(row));
}

void TextTable::align_left(std::size_t column) {
  is_left_.at(column) = true;
}

std::string TextTable::to_string() const {
  std::vector<std::size_t> widths(is_left_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += is_left_[i] ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace fairlead::tools
