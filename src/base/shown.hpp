#pragma once
// Makes foreign text safe for a one-line error message.

#include <cstddef>
#include <string>
#include <string_view>

namespace fairlead::base {

inline constexpr std::size_t kPathShown = 200;  // letters of a path in an error

/// Returns at most `letters_max` characters and then "...", with ? for everything that is not printable ASCII.
std::string shown(std::string_view text, std::size_t letters_max = 40);

/// Makes a text of several lines safe for a terminal or a log.
std::string shown_lines(std::string_view text);

}  // namespace fairlead::base
