#include "base/shown.hpp"

#include <algorithm>

namespace fairlead::base {
namespace {

bool is_printable(char letter) {
  return letter >= ' ' && letter <= '~';
}

}  // namespace

std::string shown(std::string_view text, std::size_t letters_max) {
  std::string result(text.substr(0, letters_max));
  std::ranges::replace_if(result, [](char letter) { return !is_printable(letter); }, '?');
  if (text.size() > letters_max) result += "...";
  return result;
}

std::string shown_lines(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(result, [](char letter) { return letter != '\n' && !is_printable(letter); }, '?');
  return result;
}

}  // namespace fairlead::base
