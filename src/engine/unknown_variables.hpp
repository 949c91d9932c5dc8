#pragma once
// Variables of the environment that look like ours and set nothing: misspelt ones would be ignored without a word.

#include <span>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace fairlead::engine
