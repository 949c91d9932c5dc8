#pragma once
// The roles of the far side of a measurement.

#include "tools/perf/control.hpp"
#include "tools/perf/node.hpp"

namespace fairlead::tools {

/// Most buffer descriptors in one message.
inline constexpr std::size_t kDescriptorsPerMessage = 8;

/// Sends one byte when ready. Plays the role until the control is readable.
Result<PerfOutcome> play_perf_role(PerfNode& node, const PerfCommand& command, PerfControl& control);

}  // namespace fairlead::tools
