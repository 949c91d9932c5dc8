#pragma once
// The scheduler's time slice for threads of this process.

namespace fairlead::base {

/// Asks for the shortest time slice. Linux 6.12 and newer lets a thread with short slices run at once when it wakes;
/// otherwise it may wait milliseconds behind a thread that spins. Its share of the processor stays the same, and no
/// privilege is needed. Older kernels ignore it.
void ask_for_short_slice() noexcept;

}  // namespace fairlead::base
