#include "tools/perf/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>

#include "observe/floor.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/perf/compare.hpp"
#include "tools/perf/counter_track.hpp"
#include "tools/perf/near.hpp"
#include "tools/perf/row_maker.hpp"
#include "tools/perf/two.hpp"

namespace fairlead::tools {
namespace {

Result<> measure_shm_floor(PerfOp op, const observe::FloorOptions& floor, Duration time, PerfRowMaker& shm) {
  if (op == PerfOp::latency) {
    const auto exchange = observe::floor_shm_exchange(floor);
    if (!exchange) return std::unexpected(exchange.error());
    shm.add(*exchange, time);
    return {};
  }
  const auto stream = observe::floor_shm_stream(floor);
  if (!stream) return std::unexpected(stream.error());
  shm.add(*stream);
  return {};
}

Result<> measure_floors(const PerfOptions& options, std::uint64_t size, Duration time, PerfRowMaker& first,
                        PerfRowMaker& tcp) {
  const observe::FloorOptions floor{.bytes = static_cast<std::uint32_t>(size),
                                    .duration = time,
                                    .cpu_near = options.cpus[0],
                                    .cpu_far = options.cpus[1]};
  if (options.path == "shm") return measure_shm_floor(options.op, floor, time, first);
  if (options.op == PerfOp::latency) {
    const auto exchange = observe::floor_udp_exchange(floor);
    if (!exchange) return std::unexpected(exchange.error());
    first.add(*exchange, time);
    return {};
  }
  const auto udp_stream = observe::floor_udp_stream(floor);
  if (!udp_stream) return std::unexpected(udp_stream.error());
  first.add(*udp_stream);
  const auto tcp_stream = observe::floor_tcp_stream(floor);
  if (!tcp_stream) return std::unexpected(tcp_stream.error());
  tcp.add(*tcp_stream);
  return {};
}

Result<> add_rows(PerfNode& node, PerfFar& far, const PerfOptions& options, std::uint64_t size,
                  std::vector<PerfRow>& rows, CounterTrack& counters) {
  const bool has_floors = options.path != "self" && options.has_floors;
  const Duration piece = options.time / kPerfRounds;
  const PerfTask task{
      .size = size, .in_flight = in_flight_of(options, size), .time = piece, .is_loan = options.is_loan};
  const std::uint64_t floor_size = options.is_loan ? 8 : size;  // a loan sends only a short message
  const std::string_view name = options.is_loan ? "loan" : "";
  PerfRowMaker ours(options.op, options.path, size, name);
  PerfRowMaker first(options.op, "floor-" + options.path, floor_size, name), tcp(options.op, "floor-tcp", size);
  std::vector<double> canaries;
  std::uint64_t dropped = 0;
  std::optional<PerfComparison> comparison;
  if (options.has_rivals) comparison.emplace(options, size);
  for (int round = 0; round < kPerfRounds; ++round) {
    canaries.push_back(perf_canary(options.cpus));
    const bool is_tracked = !options.output.page.empty();
    if (is_tracked) counters.look();
    auto measured = measure_perf(node, far, options.op, task);
    if (is_tracked) counters.look();
    if (!measured) return std::unexpected(std::move(measured.error()));
    ours.add(*measured);
    dropped += measured->dropped;
    if (comparison) comparison->take_turns(piece);
    if (!has_floors) continue;
    if (auto floors = measure_floors(options, floor_size, piece, first, tcp); !floors) return floors;
  }
  const double canary = perf_median(canaries);
  rows.push_back(ours.row(canary));
  if (dropped > 0) fmt::print(stderr, "fairlead: {} messages of {} bytes found no receive buffer\n", dropped, size);
  const PerfRow own = rows.back();
  const auto add_floor = [&](const PerfRowMaker& maker) {
    rows.push_back(maker.row(canary));
    rows.back().ratio = perf_ratio(options.op, own, rows.back());
  };
  if (has_floors) add_floor(first);
  if (has_floors && options.op != PerfOp::latency && options.path == "udp") add_floor(tcp);
  if (comparison) std::ranges::move(comparison->rows(own), std::back_inserter(rows));
  return {};
}

Result<std::unique_ptr<PerfFar>> start_far_of(const PerfOptions& options, const EngineSettings& engine) {
  if (options.path == "self") return PerfFar::start_thread({.host = "0@lo", .cpu = options.cpus[1]});
  return start_far(options.server, {.cpu = options.cpus.back(), .engine = engine});
}

}  // namespace

int run_perf(const PerfOptions& options) {
  EngineSettings engine;
  if (options.path != "self") engine.emplace_back("path", options.path);
  if (auto taken = take_processors(options.cpus); !taken) return report_error(taken.error());
  const auto far = start_far_of(options, engine);
  if (!far) return report_error(far.error());
  const auto node = meet_far(**far, {.host = (*far)->near_host(), .engine = engine});
  if (!node) return report_error(node.error());
  std::vector<PerfRow> rows;
  CounterTrack counters;
  for (const std::uint64_t size : options.sizes) {
    if (auto added = add_rows(**node, **far, options, size, rows, counters); !added) return report_error(added.error());
  }
  return put_out(options.output, rows, counters.looks());
}

}  // namespace fairlead::tools
