#pragma once
// Variables of the environment, and names in a file of settings, that look like ours and set nothing: misspelt ones
// would be ignored without a word.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "base/settings.hpp"

namespace fairlead::engine {

/// A variable of the environment that is no setting of an engine.
struct VariableRow {
  std::string_view name;
  std::string_view wanted;  // "roce or ib"
  std::string_view sentence;
};
std::span<const VariableRow> other_variables() noexcept;

/// A line for each "FAIRLEAD_...=value" that no part of Fairlead reads, with the setting whose name is nearest.
std::vector<std::string> unknown_variables(std::span<const std::string_view> environment);

/// An error for the first name in the file that is no setting: the file is ours alone, so it is none of another
/// program.
Result<> check_names(const base::SettingsFile& file);

}  // namespace fairlead::engine
