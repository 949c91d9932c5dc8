#pragma once
// What somebody typed, or sent, as it may stand in an error's one line.

#include <cstddef>
#include <string>
#include <string_view>

namespace fairlead::base {

inline constexpr std::size_t kPathShown = 200;  // letters of a path in an error

/// At most `letters_max` of it and then "...", with ? for whatever is not printable ASCII.
std::string shown(std::string_view text, std::size_t letters_max = 40);

/// All of a text of several lines, as it may be written to a terminal or a log.
std::string shown_lines(std::string_view text);

}  // namespace fairlead::base
