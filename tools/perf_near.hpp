#pragma once
// The measuring side: one piece of each kind of measurement.

#include "observe/histogram.hpp"
#include "tools/perf_far.hpp"
#include "tools/perf_node.hpp"

namespace fairlead::tools {

/// What one piece gave.
struct PerfPiece {
  observe::Histogram times;  // one way of a message; of a put from its submission to its event
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // both sides
  std::uint64_t dropped = 0;
  std::uint64_t corrupt = 0;  // of a checked one
};

/// What to measure.
struct PerfTask {
  std::uint64_t size = 0;
  std::uint32_t in_flight = 1;
  Duration time{};
  bool is_loan = false;     // of measure_latency: messages are handed over in place, where that can be
  bool is_checked = false;  // what arrives is looked at (perf_stamp.hpp); not by measure_rate
};

/// Messages to and fro, one at a time.
Result<PerfPiece> measure_latency(PerfNode& node, PerfFar& far, const PerfTask& task);

/// Puts into exposed buffers, `in_flight` at a time; each ends with an event here and one there.
Result<PerfPiece> measure_bandwidth(PerfNode& node, PerfFar& far, const PerfTask& task);

/// Messages, `in_flight` at a time; each ends with an event here and one there.
Result<PerfPiece> measure_rate(PerfNode& node, PerfFar& far, const PerfTask& task);

}  // namespace fairlead::tools
