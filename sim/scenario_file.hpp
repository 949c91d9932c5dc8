#pragma once
// Scenarios as JSON files; docs/simulation.md describes the keys. An error names its place and a remedy.

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario.hpp"

namespace fairlead::sim {

Result<Scenario> read_scenario(const std::string& path);
/// `name` appears in messages and plots.
Result<Scenario> parse_scenario(std::string_view text, std::string name);

}  // namespace fairlead::sim
