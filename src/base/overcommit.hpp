#pragma once
// The kernel's memory overcommit mode.

namespace fairlead::base {

/// Returns whether the kernel does not overcommit (vm.overcommit_memory=2). Then touching a page of shared memory for
/// the first time may fail with a signal. Read once.
bool is_memory_strict();
/// Reads the mode from this file.
bool is_memory_strict(const char* file);

}  // namespace fairlead::base
