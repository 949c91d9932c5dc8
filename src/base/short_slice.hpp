#pragma once
// How long the scheduler lets a thread of this process wait behind one that computes.

namespace fairlead::base {

/// Asks for the shortest turns on a processor. Linux (6.12 and newer) lets a thread of short turns begin at once when
/// it wakes; else it may wait milliseconds behind a thread that spins. Its share of the processor stays the same, and
/// no right is needed. Older kernels take no notice.
void ask_for_short_slice() noexcept;

}  // namespace fairlead::base
