#pragma once
// Which processors a thread runs on.

#include <span>

namespace fairlead::base {

/// Binds the calling thread to one processor; false where that processor is not ours.
bool pin_to_cpu(int cpu) noexcept;

/// Binds the calling thread to a set of processors; false (and nothing changed) where one of them does not exist or is
/// not ours.
bool confine_to_cpus(std::span<const unsigned> cpus) noexcept;

}  // namespace fairlead::base
