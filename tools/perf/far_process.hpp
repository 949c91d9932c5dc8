#pragma once
// The process of a far side: this program again, as `fairlead perf-far`.

#include <fairlead/error.hpp>

#include <sys/types.h>

#include "tools/perf/control.hpp"
#include "tools/perf/place.hpp"

namespace fairlead::tools {

/// Starts it, with the control as its end of the channel. It ends with this process.
Result<pid_t> spawn_far(const PerfControl& control, const PerfPlace& place);

}  // namespace fairlead::tools
