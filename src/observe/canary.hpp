#pragma once
// The canary of every figure that two cores make together: how long a cache line takes from one to the other. A
// virtual machine's cores change their places for seconds at a time, and all such figures change with them.

#include "base/time.hpp"

namespace fairlead::observe {

/// One way, the median of some thousand exchanges; takes a millisecond (at most a few 100 on a busy host) and two
/// threads of its own. Zero where it cannot be told: the same processor twice, or one that this process may not use.
base::Duration line_transfer_time(int cpu_a, int cpu_b);

}  // namespace fairlead::observe
