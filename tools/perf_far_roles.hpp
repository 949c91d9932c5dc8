#pragma once
// What the far side of a measurement does.

#include "tools/perf_control.hpp"
#include "tools/perf_node.hpp"

namespace fairlead::tools {

/// How many buffer descriptors one message carries at most.
inline constexpr std::size_t kDescriptorsPerMessage = 8;

/// Sends one byte when ready, then plays until something can be read from the control.
Result<PerfOutcome> play_perf_role(PerfNode& node, const PerfCommand& command, PerfControl& control);

}  // namespace fairlead::tools
