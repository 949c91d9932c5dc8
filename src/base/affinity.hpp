#pragma once
// Which processors a thread runs on.

#include <sched.h>

#include <span>

namespace fairlead::base {

/// Binds the calling thread to one processor; false where that processor is not ours.
bool pin_to_cpu(int cpu) noexcept;

/// Binds the calling thread, and none that it starts (Thread), to a set of processors; false (and nothing changed)
/// where one of them does not exist or is not ours.
bool confine_to_cpus(std::span<const unsigned> cpus) noexcept;
/// What the calling thread might use before it was confined; null if it was not.
const cpu_set_t* cpus_before_confinement() noexcept;

}  // namespace fairlead::base
