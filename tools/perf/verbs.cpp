#include "tools/perf/verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/processor.hpp"
#include "tools/perf/two.hpp"

namespace fairlead::tools {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kWarmUps = 200;
constexpr int kLooksPerReap = 16;  // polls of memory that the peer writes, per poll of the queues

/// Orders the far side to answer with this size from now on.
struct VerbsOrder {
  std::uint64_t size = 0;
};

VerbsEndOptions end_options(const PerfVerbsOptions& options) {
  return {.size_max = std::ranges::max(options.sizes), .depth = options.depth, .engine = options.engine};
}

/// Exchanges the invitations and connects.
Result<std::unique_ptr<VerbsEnd>> meet(PerfControl& control, const PerfVerbsOptions& options) {
  auto end = VerbsEnd::open(end_options(options));
  if (!end) return end;
  const auto peer = control.send((*end)->invitation()) ? control.receive<verbs::Invitation>() : std::nullopt;
  if (!peer) return std::unexpected(second_is_gone());
  if (auto connected = (*end)->connect(*peer); !connected) return std::unexpected(connected.error());
  // A barrier: both sides are ready.
  if (!control.send('r') || !control.receive<char>()) return std::unexpected(second_is_gone());
  return end;
}

/// The far side of round trips: returns each send or write.
class Echo {
 public:
  Echo(VerbsEnd& end, const PerfVerbsOptions& options, std::uint64_t size)
      : end_(end), options_(options), size_(size), answered_(end.received()), last_(end.arrived(size)) {}

  bool turn() {
    if (options_.op != VerbsOp::send)
      return options_.op == VerbsOp::write && !options_.is_stream ? answer_write() : end_.reap();
    if (!end_.reap_receives()) return false;
    if (options_.is_stream) return true;
    for (; answered_ < end_.received(); ++answered_) {
      if (end_.request(VerbsOp::send, size_) != 0 || !end_.reap()) return false;
    }
    return true;
  }

 private:
  bool answer_write() {
    for (int i = 0; i < kLooksPerReap; ++i) {
      const std::uint8_t number = end_.arrived(size_);
      if (number == last_) continue;
      last_ = number;
      end_.stamp(size_, number);
      return end_.request(VerbsOp::write, size_) == 0 && end_.reap();
    }
    return end_.reap();
  }

  VerbsEnd& end_;
  const PerfVerbsOptions& options_;
  std::uint64_t size_, answered_;
  std::uint8_t last_;
};

int serve_verbs(PerfControl control, const PerfVerbsOptions& options) {
  const auto end = meet(control, options);
  if (!end) return report_error(end.error());
  while (const auto order = control.receive<VerbsOrder>()) {
    Echo echo(**end, options, order->size);
    if (!control.send('r')) break;
    bool is_well = true;
    serve_until_told(control, [&] { is_well = is_well && echo.turn(); });
    // The near side may leave before it has acknowledged the last answer: no fault.
    if (!is_well && control.receive<char>()) return report_error((*end)->failure());
    if (is_well && !control.receive<char>()) break;
  }
  return kExitOk;
}

/// The near side: one request at a time, or many.
class VerbsMeter {
 public:
  VerbsMeter(VerbsEnd& end, const PerfControl& control, const PerfVerbsOptions& options, std::uint64_t size)
      : end_(end), control_(control), options_(options), size_(size) {}

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
               control_, [&] { return end_.received() > received; }, [&] { return end_.reap_receives(); }) &&
           end_.reap();
  }

  Error failure() const { return control_.is_readable() ? second_is_gone() : end_.failure(); }

 private:
  bool exchange_writes() {
    const auto number = static_cast<std::uint8_t>(end_.arrived(size_) + 1);
    end_.stamp(size_, number);
    if (end_.request(VerbsOp::write, size_) != 0) return false;
    int looks = 0;
    return step_until(
               control_, [&] { return end_.arrived(size_) == number; },
               [&] { return ++looks % kLooksPerReap != 0 || end_.reap(); }) &&
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
    return step_until(control_, done, [&] { return end_.reap(); });
  }

  VerbsEnd& end_;
  const PerfControl& control_;
  const PerfVerbsOptions& options_;
  std::uint64_t size_;
};

Result<std::vector<PerfRow>> measure_verbs(PerfControl& control, const PerfVerbsOptions& options) {
  static constexpr std::array<const char*, 5> kNames{"send", "write", "read", "fetch_add", "compare_swap"};
  const auto end = meet(control, options);
  if (!end) return std::unexpected(end.error());
  std::vector<PerfRow> rows;
  for (const std::uint64_t size : options.sizes) {
    if (!control.send(VerbsOrder{size}) || !control.receive<char>()) return std::unexpected(second_is_gone());
    VerbsMeter meter(**end, control, options, size);
    for (int i = 0; i < kWarmUps && !options.is_stream; ++i) {
      if (!meter.exchange()) return std::unexpected(meter.failure());
    }
    const PerfTwoRow wanted{
        .op = options.is_stream ? PerfOp::bandwidth : PerfOp::latency,
        .name = fmt::format("{}{}", kNames[static_cast<std::size_t>(options.op)], options.is_stream ? " stream" : ""),
        .path = options.path,
        .size = size,
        .time = options.time,
        .cpus = options.cpus,
        .has_floor = options.has_floors};
    const auto added = add_row(wanted, [&](Duration time) { return meter.measure(time); }, rows);
    if (!added) return std::unexpected(added.error());
    if (!control.send('s')) return std::unexpected(second_is_gone());
  }
  return rows;
}

}  // namespace

int run_perf_verbs(const PerfVerbsOptions& options) {
  return run_two({.cpus = options.cpus,
                  .output = options.output,
                  .serve = [&](PerfControl control) { return serve_verbs(std::move(control), options); },
                  .measure = [&](PerfControl& control) { return measure_verbs(control, options); }});
}

}  // namespace fairlead::tools
