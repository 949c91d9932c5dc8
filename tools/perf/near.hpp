#pragma once
// The measuring side: one piece of each kind of measurement.

#include "observe/histogram.hpp"
#include "tools/perf/far.hpp"
#include "tools/perf/node.hpp"

namespace fairlead::tools {

/// Opens the near side for messages, and makes the two known to each other.
Result<std::unique_ptr<PerfNode>> meet_far(PerfFar& far, const PerfPlace& place);

/// The result of one piece.
struct PerfPiece {
  observe::Histogram times;  // one-way time of a message; of a put: from submission to event
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // both sides
  std::uint64_t dropped = 0;
  std::uint64_t corrupt = 0;  // of checked pieces
};

/// What to measure.
struct PerfTask {
  std::uint64_t size = 0;
  std::uint32_t in_flight = 1;
  Duration time{};
  bool is_loan = false;     // of measure_latency: passes messages by reference where possible
  bool is_checked = false;  // verifies what arrives (stamp.hpp); ignored by measure_rate
};

/// Measures round trips, one at a time.
Result<PerfPiece> measure_latency(PerfNode& node, PerfFar& far, const PerfTask& task);

/// Measures puts into exposed buffers, `in_flight` at a time. Each ends with an event on both sides.
Result<PerfPiece> measure_bandwidth(PerfNode& node, PerfFar& far, const PerfTask& task);

/// Measures messages, `in_flight` at a time. Each ends with an event on both sides.
Result<PerfPiece> measure_rate(PerfNode& node, PerfFar& far, const PerfTask& task);

}  // namespace fairlead::tools
