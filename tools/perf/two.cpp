#include "tools/perf/two.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "observe/canary.hpp"
#include "observe/floor.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/processor.hpp"

namespace fairlead::tools {
namespace {

int measure_here(const PerfTwo& two, PerfControl control) {
  if (!pin_thread(two.cpus[0]))
    return report_error(
        {Status::invalid, 0, fmt::format("processor {} is not ours: name two with --cpus", two.cpus[0])});
  const auto rows = two.measure(control);
  if (!rows) return report_error(rows.error());
  return put_out(two.output, *rows);
}

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
    canaries.push_back(static_cast<double>(observe::line_transfer_time(wanted.cpus[0], wanted.cpus[1]).count()));
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

Error second_is_gone() {
  return {Status::system, 0, "the second process of the measurement has ended: see its message above, if it had one"};
}

int run_two(const PerfTwo& two) {
  auto ends = PerfControl::make_pair();
  if (!ends) return report_error(ends.error());
  std::fflush(nullptr);
  const pid_t other = fork();
  if (other < 0) return report_error({Status::system, errno, "cannot start a second process"});
  if (other == 0) {
    {
      const PerfControl near = std::move(ends->first);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)pin_thread(two.cpus[1]);
    _exit(two.serve(std::move(ends->second)));
  }
  {
    const PerfControl far = std::move(ends->second);
  }
  const int code = measure_here(two, std::move(ends->first));
  int status = 0;
  waitpid(other, &status, 0);
  return code;
}

}  // namespace fairlead::tools
