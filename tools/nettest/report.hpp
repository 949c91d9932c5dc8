#pragma once
// The output of a nettest's console: a line every second, and at the end tables, or (--json) one line for programs.
// docs/nettest.md describes each key.

#include <string>

#include "tools/nettest/console.hpp"

namespace fairlead::tools {

/// Returns the line for the progress since `before`.
std::string nettest_line(const NettestState& state, const NettestState& before);
std::string nettest_report(const NettestPlan& plan, const NettestState& state);
std::string nettest_json(const NettestPlan& plan, const NettestState& state);

/// Returns whether something failed, was bad, or was counted by only one side.
bool has_faults(const NettestState& state);

}  // namespace fairlead::tools
