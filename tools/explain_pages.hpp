#pragma once
// Pages of the documentation that are made from the tables of `fairlead explain` and `fairlead options`.

#include <string>

namespace fairlead::tools {

/// docs/words.md: statuses, numbers and states.
std::string words_page();

/// docs/settings.md: what can be set, by which name and variable.
std::string settings_page();

}  // namespace fairlead::tools
