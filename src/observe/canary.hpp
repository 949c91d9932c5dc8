#pragma once
// The canary for figures that two cores make together: the time that a cache line takes from one core to the other. A
// virtual machine's cores change their places for seconds at a time, and all such figures change with them.

#include "base/time.hpp"

namespace fairlead::observe {

/// Returns the one-way time, the median of some thousand exchanges. Takes a millisecond (at most a few hundred on a
/// busy host) and two threads. Zero if it cannot be measured: the same processor twice, or one that this process may
/// not use.
base::Duration line_transfer_time(int cpu_a, int cpu_b);

}  // namespace fairlead::observe
