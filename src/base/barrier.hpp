#pragma once
// A full memory barrier in all threads of all registered processes, paid by the caller. It replaces the fence on the
// other side of a handshake: a side that publishes often and is rarely asked then needs no fence.

namespace fairlead::base {

/// Registers this process for the barriers of others. Returns false if the kernel cannot do it; then nobody may rely on
/// it. More calls do no harm.
bool register_for_barriers() noexcept;

/// Afterwards each running registered process sees this thread's earlier writes, and this thread sees its earlier
/// writes. Only after register_for_barriers() returned true. Takes microseconds.
void barrier_everywhere() noexcept;

}  // namespace fairlead::base
