#pragma once
// A measurement between this process and a second one: of this host, which is started for it and ends with it, or of a
// `fairlead perf --server`.

#include <fairlead/error.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/perf/far.hpp"
#include "tools/perf/far_end.hpp"
#include "tools/perf/output.hpp"
#include "tools/perf/row_maker.hpp"

namespace fairlead::tools {

struct PerfTwo {
  std::vector<int> cpus;  // near and far; of a measurement with a server: near
  std::string server;     // HOST[:PORT] of the server; empty: a second process
  std::string path;       // udp or shm
  EngineSettings engine;
  PerfOutput output;
  /// Runs in this process, at the near side's place.
  std::function<Result<std::vector<PerfRow>>(PerfFar&, const PerfPlace&)> measure;
};

/// Checks that this process may use the processors, and pins this thread to the first one.
Result<> take_processors(const std::vector<int>& cpus);

/// Connects to the server, or starts a second process at `place` if `server` is empty.
Result<std::unique_ptr<PerfFar>> start_far(const std::string& server, const PerfPlace& place);

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

/// Opens the near end of active messages or queue pairs, and makes the two ends known to each other.
template <typename End>
Result<std::unique_ptr<End>> meet_end(PerfFar& far, const PerfPlace& place, const PerfPlan& plan) {
  const auto at = far.open(plan);
  if (!at) return std::unexpected(at.error());
  auto end = End::open(place, plan);
  if (!end) return end;
  if (auto met = (*end)->meet(*at); !met) return std::unexpected(std::move(met.error()));
  if (auto met = far.meet((*end)->at()); !met) return std::unexpected(std::move(met.error()));
  return end;
}

/// Returns the time in ns that a cache line takes between the two processors; 0 if they are of two hosts.
double perf_canary(const std::vector<int>& cpus);

/// Calls `step` until `done`. Returns false if a step fails or the far side has news.
template <typename Done, typename Step>
bool step_until(const PerfFar& far, Done done, Step step) {
  for (std::uint32_t steps = 1; !done(); ++steps) {
    if (!step() || (steps % kPollsPerControlLook == 0 && far.has_news())) return false;
  }
  return true;
}

}  // namespace fairlead::tools
