#pragma once
// Files of lines of words: what is behind a # is left out, as are empty lines.

#include <string_view>
#include <vector>

namespace fairlead::seal {

/// Takes the first line off `text` and fills its words; false if there is no line left.
bool next_line(std::string_view& text, std::vector<std::string_view>& words);

}  // namespace fairlead::seal
