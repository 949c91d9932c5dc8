#pragma once
// The process of a far side: this program again, as `fairlead perf-far`.

#include <fairlead/error.hpp>

#include "tools/perf/control.hpp"
#include "tools/perf/place.hpp"
#include "tools/process/child_process.hpp"

namespace fairlead::tools {

/// Starts it, with the control as its end of the channel. It ends with this process.
Result<ChildProcess> start_far_process(const PerfControl& control, const PerfPlace& place);

}  // namespace fairlead::tools
