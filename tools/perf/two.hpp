#pragma once
// A measurement between this process and a second one, which is forked for it and ends with it.

#include <fairlead/error.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/perf/control.hpp"
#include "tools/perf/output.hpp"
#include "tools/perf/row_maker.hpp"

namespace fairlead::tools {

struct PerfTwo {
  std::vector<int> cpus;  // near and far
  PerfOutput output;
  /// Runs in the second process, pinned to its processor, until the control closes. Returns its exit code.
  std::function<int(PerfControl)> serve;
  /// Runs in this process.
  std::function<Result<std::vector<PerfRow>>(PerfControl&)> measure;
};

/// Runs both and prints the rows. Returns the exit code.
int run_two(const PerfTwo& two);

/// One row, measured in pieces that are interleaved with its floor.
struct PerfTwoRow {
  PerfOp op = PerfOp::latency;
  std::string name;
  std::string path;  // udp or shm
  std::uint64_t size = 0;
  Duration time{};
  std::vector<int> cpus;
  bool has_floor = true;
};
Result<> add_row(const PerfTwoRow& wanted, const std::function<Result<PerfPiece>(Duration)>& measure,
                 std::vector<PerfRow>& rows);

/// Returns the error that the second process is gone.
Error second_is_gone();

inline constexpr std::uint32_t kPollsPerControlLook = 4096;  // because each look is a system call

/// Polls until the control is readable.
template <typename Poll>
void serve_until_told(const PerfControl& control, Poll poll) {
  for (std::uint32_t polls = 0; polls % kPollsPerControlLook != 0 || !control.is_readable(); ++polls) poll();
}

/// Calls `step` until `done`. Returns false if a step fails or the second process is gone.
template <typename Done, typename Step>
bool step_until(const PerfControl& control, Done done, Step step) {
  for (std::uint32_t steps = 1; !done(); ++steps) {
    if (!step() || (steps % kPollsPerControlLook == 0 && control.is_readable())) return false;
  }
  return true;
}

}  // namespace fairlead::tools
