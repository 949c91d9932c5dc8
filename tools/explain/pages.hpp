#pragma once
// Generates documentation pages from the tables of `fairlead explain` and `fairlead options`.

#include <string>

namespace fairlead::tools {

/// Returns docs/words.md: statuses, numbers and states.
std::string words_page();

/// Returns docs/settings.md: all settings, with names and variables.
std::string settings_page();

}  // namespace fairlead::tools
