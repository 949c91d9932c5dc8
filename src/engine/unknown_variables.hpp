#pragma once
// Finds environment variables and names in a settings file that look like Fairlead's but set nothing. Misspelt names
// would otherwise be ignored silently.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>

#include "base/settings.hpp"

namespace fairlead::engine {

/// An environment variable that is no engine option.
struct VariableRow {
  std::string_view name;
  std::string_view wanted;  // for example "roce or ib"
  std::string_view sentence;
  bool (*is_good)(std::string_view) = nullptr;  // null: any value, or checked where it is used
};
std::span<const VariableRow> other_variables() noexcept;

/// Returns a line for each "FAIRLEAD_...=value" that no part of Fairlead reads, with the most similar setting.
std::vector<std::string> unknown_variables(std::span<const std::string_view> environment);

/// Returns an error for the first name in the file that is no setting. The file is Fairlead's alone, so the name cannot
/// belong to another program.
Result<> check_names(const base::SettingsFile& file);

}  // namespace fairlead::engine
