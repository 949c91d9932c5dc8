#pragma once
// Which processor a thread runs on.

namespace fairlead::base {

/// Binds the calling thread to one processor; false where that processor is not ours.
bool pin_to_cpu(int cpu) noexcept;

}  // namespace fairlead::base
