#pragma once
// The thread sanitizer's own ways that tests would notice. Does nothing in other builds.

namespace fairlead::tests {

/// Ends the thread that it keeps beside the program's: memory is moved in place only where nobody else runs. A child of
/// fork() has none either.
void stop_sanitizers_thread();

}  // namespace fairlead::tests
