#pragma once
// Files with words on lines; a # begins a comment. An empty line has no words.

#include <string_view>
#include <vector>

namespace fairlead::seal {

/// Takes the first line off `text` and splits it into words; returns false if there is no line left.
bool next_line(std::string_view& text, std::vector<std::string_view>& words);

}  // namespace fairlead::seal
