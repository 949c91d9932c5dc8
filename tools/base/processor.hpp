#pragma once

namespace fairlead::tools {

/// Returns the user and system time of this process so far.
double process_cpu_seconds();

}  // namespace fairlead::tools
