#include "tools/doctor/kernel_facts.hpp"

#include <fstream>

namespace fairlead::tools {

std::optional<std::string> line_of(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

std::optional<std::uint64_t> number_of(const std::string& file) {
  const auto line = line_of(file);
  if (!line || line->find_first_not_of("0123456789") != line->npos || line->empty()) return std::nullopt;
  return std::stoull(*line);
}

}  // namespace fairlead::tools
