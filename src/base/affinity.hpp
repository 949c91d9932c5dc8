#pragma once
// The processors on which a thread runs.

#include <sched.h>

#include <span>

namespace fairlead::base {

/// Binds the calling thread to one processor; returns false if this process may not use it.
bool pin_to_cpu(int cpu) noexcept;

/// Binds the calling thread, but no Thread that it starts, to a set of processors. Returns false, and changes nothing,
/// if one of them does not exist or may not be used.
bool confine_to_cpus(std::span<const unsigned> cpus) noexcept;
/// Returns the processors that the calling thread could use before it was confined; null if it was not.
const cpu_set_t* cpus_before_confinement() noexcept;

}  // namespace fairlead::base
