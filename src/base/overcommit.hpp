#pragma once
// How the kernel gives memory out.

namespace fairlead::base {

/// Only as far as it has it (vm.overcommit_memory=2): then pages of shared memory that are touched for the first time
/// may not be there, which is a signal. Read once.
bool is_memory_strict();
/// As that file says.
bool is_memory_strict(const char* file);

}  // namespace fairlead::base
