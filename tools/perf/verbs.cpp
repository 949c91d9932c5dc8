#include "tools/perf/verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tools/base/processor.hpp"
#include "tools/perf/two.hpp"

namespace fairlead::tools {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kWarmUps = 200;

/// The near side: one request at a time, or many.
class VerbsMeter {
 public:
  VerbsMeter(VerbsEnd& end, PerfFar& far, const PerfVerbsOptions& options, std::uint64_t size)
      : end_(end), far_(far), options_(options), size_(size) {}

  Result<PerfPiece> measure(Duration time) {
    PerfPiece piece;
    const double cpu_before = process_cpu_seconds();
    const auto begun = SteadyClock::now();
    const bool is_well = options_.is_stream ? stream(begun + time, piece) : one_by_one(begun + time, piece);
    if (!is_well) return std::unexpected(failure());
    piece.bytes = piece.messages * size_;
    piece.seconds = std::chrono::duration<double>(SteadyClock::now() - begun).count();
    // The other side spins for as long.
    piece.cpu_seconds = process_cpu_seconds() - cpu_before + piece.seconds;
    return piece;
  }

  /// One round trip of a send or a write. A read or an atomic is a round trip by itself.
  bool exchange() {
    if (options_.op == VerbsOp::write) return exchange_writes();
    const std::uint64_t ended = end_.ended(), received = end_.received();
    if (end_.request(options_.op, size_) != 0) return false;
    if (options_.op != VerbsOp::send) return reap_until([&] { return end_.ended() > ended; });
    return step_until(
               far_, [&] { return end_.received() > received; }, [&] { return end_.reap_receives(); }) &&
           end_.reap();
  }

  Error failure() const { return far_.has_news() ? far_.news() : end_.failure(); }

 private:
  bool exchange_writes() {
    const auto number = static_cast<std::uint8_t>(end_.arrived(size_) + 1);
    end_.stamp(size_, number);
    if (end_.request(VerbsOp::write, size_) != 0) return false;
    int looks = 0;
    return step_until(
               far_, [&] { return end_.arrived(size_) == number; },
               [&] { return ++looks % kVerbsLooksPerReap != 0 || end_.reap(); }) &&
           end_.reap();
  }

  bool one_by_one(SteadyClock::time_point until, PerfPiece& piece) {
    const bool is_both_ways = options_.op == VerbsOp::send || options_.op == VerbsOp::write;
    for (auto at = SteadyClock::now(); at < until; ++piece.messages) {
      if (!exchange()) return false;
      const auto after = SteadyClock::now();
      piece.times.record((after - at) / (is_both_ways ? 2 : 1));
      at = after;
    }
    return true;
  }

  bool stream(SteadyClock::time_point until, PerfPiece& piece) {
    const std::uint64_t before = end_.ended();
    std::uint64_t posted = 0;
    while (SteadyClock::now() < until) {
      for (; posted - (end_.ended() - before) < options_.depth; ++posted) {
        if (end_.request(options_.op, size_) != 0) return false;
      }
      if (!end_.reap()) return false;
    }
    piece.messages = posted;
    return reap_until([&] { return end_.ended() - before == posted; });
  }

  template <typename Done>
  bool reap_until(Done done) {
    return step_until(far_, done, [&] { return end_.reap(); });
  }

  VerbsEnd& end_;
  PerfFar& far_;
  const PerfVerbsOptions& options_;
  std::uint64_t size_;
};

Result<std::vector<PerfRow>> measure_verbs(PerfFar& far, const PerfPlace& place, const PerfVerbsOptions& options) {
  const PerfPlan plan{.kind = PerfKind::verbs,
                      .size_max = std::ranges::max(options.sizes),
                      .depth = options.depth,
                      .op = options.op,
                      .is_stream = options.is_stream};
  const auto end = meet_end<VerbsEnd>(far, place, plan);
  if (!end) return std::unexpected(end.error());
  std::vector<PerfRow> rows;
  for (const std::uint64_t size : options.sizes) {
    if (auto begun = far.begin({.size = size}); !begun) return std::unexpected(std::move(begun.error()));
    VerbsMeter meter(**end, far, options, size);
    for (int i = 0; i < kWarmUps && !options.is_stream; ++i) {
      if (!meter.exchange()) return std::unexpected(meter.failure());
    }
    const PerfTwoRow wanted{.op = options.is_stream ? PerfOp::bandwidth : PerfOp::latency,
                            .name = fmt::format("{}{}", name_of(options.op), options.is_stream ? " stream" : ""),
                            .path = options.path,
                            .size = size,
                            .time = options.time,
                            .cpus = options.cpus,
                            .has_floor = options.has_floors};
    const auto added = add_row(wanted, [&](Duration time) { return meter.measure(time); }, rows);
    if (!added) return std::unexpected(added.error());
    if (const auto outcome = far.end(); !outcome) return std::unexpected(outcome.error());
  }
  return rows;
}

}  // namespace

int run_perf_verbs(const PerfVerbsOptions& options) {
  return run_two({.cpus = options.cpus,
                  .server = options.server,
                  .path = options.path,
                  .engine = options.engine,
                  .output = options.output,
                  .measure = [&](PerfFar& far, const PerfPlace& place) { return measure_verbs(far, place, options); }});
}

}  // namespace fairlead::tools
