#include "seal/words.hpp"

namespace fairlead::seal {

bool next_line(std::string_view& text, std::vector<std::string_view>& words) {
  constexpr std::string_view kSpace = " \t\r";
  words.clear();
  if (text.empty()) return false;
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
  line = line.substr(0, line.find('#'));
  while (true) {
    const auto begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return true;
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find_first_of(kSpace));
    words.push_back(word);
    line.remove_prefix(word.size());
  }
}

}  // namespace fairlead::seal
