#include "tools/perf/am.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "tools/base/processor.hpp"
#include "tools/perf/row_maker.hpp"
#include "tools/perf/two.hpp"

namespace fairlead::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUpRequests = 200;

Error failure_of(PerfFar& far) {
  if (far.has_news()) return far.news();
  return {Status::system, 0, "the measurement failed: an active message came back"};
}

Result<PerfPiece> measure(AmEnd& end, PerfFar& far, const PerfAmOptions& options, std::uint64_t size, Duration time) {
  PerfPiece piece;
  const std::uint64_t before = end.replies();
  const double cpu_before = process_cpu_seconds();
  const auto begun = Clock::now();
  auto now = begun;
  std::uint64_t sent = 0;
  const auto is_answered = [&] {
    return step_until(
        far, [&] { return end.replies() == before + sent; },
        [&] {
          end.poll();
          return !end.has_failed();
        });
  };
  while (now - begun < time) {
    if (end.send(options.kind, size) != Status::ok) break;
    ++sent;
    if (!options.is_one_way) {
      if (!is_answered()) return std::unexpected(failure_of(far));
    } else if (sent % 64 != 0) {
      continue;  // reading the clock costs as much as a message
    }
    const auto after = Clock::now();
    if (!options.is_one_way) piece.times.record(after - now);
    now = after;
  }
  if (!is_answered()) return std::unexpected(failure_of(far));
  piece.messages = sent;
  piece.bytes = sent * size;
  piece.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  // The other side spins for as long.
  piece.cpu_seconds = process_cpu_seconds() - cpu_before + piece.seconds;
  return piece;
}

Result<std::vector<PerfRow>> measure_all(AmEnd& end, PerfFar& far, const PerfAmOptions& options) {
  static constexpr std::array<const char*, 3> kNames{"short", "medium", "long"};
  const std::string name = fmt::format("am {} {}", kNames[static_cast<std::size_t>(options.kind)],
                                       options.is_one_way ? "one way" : "and back");
  std::vector<PerfRow> rows;
  for (const std::uint64_t size : options.sizes) {
    for (int i = 0; i < kWarmUpRequests; ++i) {
      if (end.send(options.kind, size) != Status::ok)
        return std::unexpected(Error{Status::invalid, 0, fmt::format("{} bytes are too many for this kind", size)});
    }
    if (!step_until(
            far, [&] { return end.is_idle(); },
            [&] {
              end.poll();
              return !end.has_failed();
            }))
      return std::unexpected(failure_of(far));
    const PerfTwoRow wanted{.op = options.is_one_way ? PerfOp::bandwidth : PerfOp::latency,
                            .name = name,
                            .path = options.path,
                            .size = size,
                            .time = options.time,
                            .cpus = options.cpus,
                            .has_floor = options.has_floors && !options.is_one_way};
    // The ratio compares a round trip of request and reply with the floor's one way.
    const auto added = add_row(wanted, [&](Duration time) { return measure(end, far, options, size, time); }, rows);
    if (!added) return std::unexpected(added.error());
  }
  return rows;
}

}  // namespace

int run_perf_am(const PerfAmOptions& options) {
  const PerfPlan plan{.kind = PerfKind::active,
                      .size_max = std::ranges::max(options.sizes),
                      .depth = options.depth,
                      .is_unpacked = options.is_unpacked};
  return run_two({.cpus = options.cpus,
                  .server = options.server,
                  .path = options.path,
                  .engine = options.engine,
                  .output = options.output,
                  .measure = [&](PerfFar& far, const PerfPlace& place) -> Result<std::vector<PerfRow>> {
                    const auto end = meet_end<AmEnd>(far, place, plan);
                    if (!end) return std::unexpected(end.error());
                    if (auto begun = far.begin({}); !begun) return std::unexpected(std::move(begun.error()));
                    return measure_all(**end, far, options);
                  }});
}

}  // namespace fairlead::tools
