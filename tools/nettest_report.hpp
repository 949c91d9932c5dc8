#pragma once
// What the console of a nettest says: a line every second, and at the end tables, or (--json) one line for programs.
// docs/nettest.md names every key.

#include <string>

#include "tools/nettest_console.hpp"

namespace fairlead::tools {

/// What has come since `before`.
std::string nettest_line(const NettestState& state, const NettestState& before);
std::string nettest_report(const NettestPlan& plan, const NettestState& state);
std::string nettest_json(const NettestPlan& plan, const NettestState& state);

/// Whether something failed, was bad, or was counted by one side alone.
bool has_faults(const NettestState& state);

}  // namespace fairlead::tools
