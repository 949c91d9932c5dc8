#include "base/shown.hpp"

#include <algorithm>

namespace fairlead::base {

std::string shown(std::string_view text, std::size_t letters_max) {
  std::string result(text.substr(0, letters_max));
  std::ranges::replace_if(result, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  if (text.size() > letters_max) result += "...";
  return result;
}

}  // namespace fairlead::base
