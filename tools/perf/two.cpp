#include "tools/perf/two.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/affinity.hpp"
#include "observe/canary.hpp"
#include "observe/floor.hpp"
#include "tools/base/address.hpp"
#include "tools/base/command_line.hpp"

namespace fairlead::tools {
namespace {

Result<> measure_floor(const PerfTwoRow& wanted, Duration time, PerfRowMaker& floor) {
  const observe::FloorOptions plain{.bytes = static_cast<std::uint32_t>(std::max(wanted.size, std::uint64_t{1})),
                                    .duration = time,
                                    .cpu_near = wanted.cpus[0],
                                    .cpu_far = wanted.cpus[1]};
  const bool is_shm = wanted.path == "shm";
  if (wanted.op == PerfOp::latency) {
    const auto exchange = is_shm ? observe::floor_shm_exchange(plain) : observe::floor_udp_exchange(plain);
    if (!exchange) return std::unexpected(exchange.error());
    floor.add(*exchange, time);
    return {};
  }
  const auto stream = is_shm ? observe::floor_shm_stream(plain) : observe::floor_udp_stream(plain);
  if (!stream) return std::unexpected(stream.error());
  floor.add(*stream);
  return {};
}

}  // namespace

Result<> add_row(const PerfTwoRow& wanted, const std::function<Result<PerfPiece>(Duration)>& measure,
                 std::vector<PerfRow>& rows) {
  PerfRowMaker ours(wanted.op, wanted.path, wanted.size), floor(wanted.op, "floor-" + wanted.path, wanted.size);
  std::vector<double> canaries;
  const Duration part = wanted.time / kPerfRounds;
  for (int round = 0; round < kPerfRounds; ++round) {
    canaries.push_back(perf_canary(wanted.cpus));
    auto piece = measure(part);
    if (!piece) return std::unexpected(std::move(piece.error()));
    ours.add(*piece);
    if (!wanted.has_floor) continue;
    if (auto measured = measure_floor(wanted, part, floor); !measured) return measured;
  }
  rows.push_back(ours.row(perf_median(canaries)));
  rows.back().op = wanted.name;
  if (!wanted.has_floor) return {};
  const PerfRow own = rows.back();
  rows.push_back(floor.row(own.canary_ns));
  rows.back().ratio = perf_ratio(wanted.op, own, rows.back());
  return {};
}

double perf_canary(const std::vector<int>& cpus) {
  return cpus.size() < 2 ? 0 : static_cast<double>(observe::line_transfer_time(cpus[0], cpus[1]).count());
}

Result<> take_processors(const std::vector<int>& cpus) {
  for (const int cpu : std::views::reverse(cpus)) {
    if (!base::pin_to_cpu(cpu))
      return std::unexpected(
          Error{Status::invalid, 0, fmt::format("processor {} is not ours: name others with --cpus", cpu)});
  }
  return {};
}

Result<std::unique_ptr<PerfFar>> start_far(const std::string& server, const PerfPlace& place) {
  if (server.empty()) return PerfFar::start_process(place);
  const auto address = look_up_server(server, kPerfPort);
  if (!address) return std::unexpected(address.error());
  return PerfFar::connect(*address);
}

int run_two(const PerfTwo& two) {
  EngineSettings engine = two.engine;
  engine.emplace_back("path", two.path);
  if (auto taken = take_processors(two.cpus); !taken) return report_error(taken.error());
  const auto far = start_far(two.server, {.cpu = two.cpus.back(), .engine = engine});
  if (!far) return report_error(far.error());
  const auto rows = two.measure(**far, {.host = (*far)->near_host(), .engine = std::move(engine)});
  if (!rows) return report_error(rows.error());
  return put_out(two.output, *rows);
}

}  // namespace fairlead::tools
