#pragma once

namespace fairlead::tools {

/// Pins the calling thread to a processor. Returns false if this process may not use it.
bool pin_thread(int cpu);

/// Returns the user and system time of this process so far.
double process_cpu_seconds();

}  // namespace fairlead::tools
