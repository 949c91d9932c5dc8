#pragma once
// Works around behaviour of ThreadSanitizer that tests would notice. Does nothing in other builds.

namespace fairlead::tests {

/// Ends the sanitizer's background thread, because memory is moved in place only in processes without other threads. A
/// child of fork() has no such thread either.
void stop_sanitizers_thread();

}  // namespace fairlead::tests
