#include "tools/perf/loss.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ranges>

#include "base/affinity.hpp"
#include "base/network_namespace.hpp"
#include "base/quantity.hpp"
#include "observe/canary.hpp"
#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/perf/row_maker.hpp"

namespace fairlead::tools {
namespace {

constexpr std::uint64_t kLossMax = 500'000;  // millionths
constexpr std::size_t kLossesMax = 64;
constexpr std::array<const char*, 2> kCongestionControls{"cubic", "bbr"};
constexpr std::uint32_t kNearHost = 0x0a4d'0001, kFarHost = 0x0a4d'0002;  // LossyWire's addresses

std::unexpected<Error> invalid(std::string message) {
  return std::unexpected(Error{Status::invalid, 0, std::move(message)});
}

/// Parses "1%", "0.05%" or "0".
Result<double> parse_loss(std::string_view text) {
  const auto millionths = base::parse_quantity(text, "ppm");
  if (!millionths || *millionths > kLossMax || (*millionths > 0 && !base::has_unit(text)))
    return invalid(fmt::format("'{}' is no loss: 0 to 50%, as in 0,0.1%,1%", text));
  return static_cast<double>(*millionths) / 1e6;
}

/// The state that all measurements share.
class LossRun {
 public:
  LossRun(const PerfOptions& options, const PerfLoss& loss, LossyWire wire)
      : options_(options), loss_(loss), wire_(std::move(wire)) {}

  Result<> start() {
    const EngineSettings engine{{"path", "udp"}};
    {
      const auto visit = base::NetworkVisit::enter(wire_.far_network());
      if (!visit) return std::unexpected(visit.error());
      auto far = PerfFar::start_process(
          {.host = std::string(LossyWire::kFarAddress), .cpu = options_.cpus[1], .engine = engine});
      if (!far) return std::unexpected(std::move(far.error()));
      far_ = std::move(*far);
    }
    auto node = meet_far(*far_, {.host = std::string(LossyWire::kNearAddress), .engine = engine});
    if (!node) return std::unexpected(std::move(node.error()));
    node_ = std::move(*node);
    return {};
  }

  Result<> add_rows(std::uint64_t size, double part, std::vector<PerfRow>& rows);

 private:
  observe::FloorOptions floor_options(std::uint64_t size) const {
    return {.bytes = static_cast<std::uint32_t>(size),
            .duration = options_.time / kPerfRounds,
            .cpu_near = options_.cpus[0],
            .cpu_far = options_.cpus[1],
            .near = {.address = kNearHost},
            .far = {.address = kFarHost, .network = wire_.far_network()}};
  }

  /// Measures one piece of a floor.
  template <typename Exchange, typename Stream>
  Result<> measure(PerfRowMaker& maker, const observe::FloorOptions& floor, Exchange exchange, Stream stream) {
    if (options_.op == PerfOp::latency) {
      const auto measured = exchange(floor);
      if (!measured) return std::unexpected(measured.error());
      maker.add(*measured, floor.duration);
      return {};
    }
    const auto measured = stream(floor);
    if (!measured) return std::unexpected(measured.error());
    maker.add(*measured);
    return {};
  }

  Result<> measure_udp(PerfRowMaker& maker, std::uint64_t size) {
    return measure(maker, floor_options(size), observe::floor_udp_exchange, observe::floor_udp_stream);
  }

  Result<> measure_tcp(PerfRowMaker& maker, std::uint64_t size, const char* congestion_control) {
    observe::FloorOptions floor = floor_options(size);
    floor.congestion_control = congestion_control;
    return measure(maker, floor, observe::floor_tcp_exchange, observe::floor_tcp_stream);
  }

  const PerfOptions& options_;
  const PerfLoss& loss_;
  LossyWire wire_;
  std::unique_ptr<PerfFar> far_;
  std::unique_ptr<PerfNode> node_;
  std::array<bool, kCongestionControls.size()> is_missing_{};  // reported already
};

Result<> LossRun::add_rows(std::uint64_t size, double part, std::vector<PerfRow>& rows) {
  const PerfTask task{.size = size,
                      .in_flight = in_flight_of(options_, size),
                      .time = options_.time / kPerfRounds,
                      .is_checked = size >= sizeof(std::uint64_t)};
  PerfRowMaker ours(options_.op, "udp", size), udp(options_.op, "floor-udp", size);
  std::vector<PerfRowMaker> tcp;
  tcp.reserve(kCongestionControls.size());
  for (const char* name : kCongestionControls) tcp.emplace_back(options_.op, fmt::format("tcp-{}", name), size);
  std::vector<double> canaries;
  LossyWire::Tally tally;
  std::uint64_t dropped = 0, corrupt = 0;
  for (int round = 0; round < kPerfRounds; ++round) {
    canaries.push_back(static_cast<double>(observe::line_transfer_time(options_.cpus[0], options_.cpus[1]).count()));
    if (auto set = wire_.lose(part, loss_.unit); !set) return set;
    auto measured = measure_perf(*node_, *far_, options_.op, task);
    if (!measured) return std::unexpected(std::move(measured.error()));
    ours.add(*measured);
    dropped += measured->dropped;
    corrupt += measured->corrupt;
    const auto counted = wire_.tally();
    if (!counted) return std::unexpected(counted.error());
    tally.passed += counted->passed;
    tally.lost += counted->lost;
    if (!options_.has_floors) continue;
    for (std::size_t i = 0; i < tcp.size(); ++i) {
      if (is_missing_[i]) continue;
      const auto done = measure_tcp(tcp[i], size, kCongestionControls[i]);
      if (!done && done.error().status != Status::not_supported) return done;
      if (done) continue;
      is_missing_[i] = true;
      fmt::print(stderr, "fairlead: {}: no row for it\n", done.error().message);
    }
    if (auto set = wire_.lose(0, loss_.unit); !set) return set;
    if (auto done = measure_udp(udp, size); !done) return done;
  }
  if (corrupt > 0)
    return std::unexpected(
        Error{Status::system, 0, fmt::format("{} transfers of {} bytes arrived damaged or twice", corrupt, size)});
  if (dropped > 0) fmt::print(stderr, "fairlead: {} messages of {} bytes found no receive buffer\n", dropped, size);

  const double canary = perf_median(canaries);
  const double lost = static_cast<double>(tally.lost) / static_cast<double>(std::max<std::uint64_t>(tally.passed, 1));
  PerfRow own = ours.row(canary);
  own.loss = part;
  own.lost = lost;
  rows.push_back(own);
  if (!options_.has_floors) return {};
  const auto add = [&](const PerfRowMaker& maker, double its_loss) {
    PerfRow row = maker.row(canary);
    row.loss = its_loss;
    row.lost = its_loss;
    row.ratio = perf_ratio(options_.op, own, row);
    rows.push_back(std::move(row));
  };
  add(udp, 0);
  for (std::size_t i = 0; i < tcp.size(); ++i)
    if (!is_missing_[i]) add(tcp[i], part);
  return {};
}

Result<std::vector<PerfRow>> measure_all(const PerfOptions& options, const PerfLoss& loss) {
  for (const int cpu : {options.cpus[1], options.cpus[0]}) {
    if (!base::pin_to_cpu(cpu)) return invalid(fmt::format("processor {} is not ours: name two with --cpus", cpu));
  }
  setenv("FAIRLEAD_PATH", "udp", 1);  // in both processes: shared memory would bypass the wire
  auto wire = LossyWire::lay();
  if (!wire) return std::unexpected(std::move(wire.error()));
  LossRun run(options, loss, std::move(*wire));
  if (auto started = run.start(); !started) return std::unexpected(std::move(started.error()));
  std::vector<PerfRow> rows;
  for (const std::uint64_t size : options.sizes) {
    for (const double part : loss.parts) {
      if (auto added = run.add_rows(size, part, rows); !added) return std::unexpected(std::move(added.error()));
    }
  }
  return rows;
}

}  // namespace

Result<std::vector<double>> parse_losses(std::string_view text) {
  std::vector<double> losses;
  for (const auto piece : std::views::split(text, ',')) {
    const auto loss = parse_loss(std::string_view(piece.begin(), piece.end()));
    if (!loss) return std::unexpected(loss.error());
    losses.push_back(*loss);
  }
  if (losses.empty() || losses.size() > kLossesMax)
    return invalid(fmt::format("{} rates of loss: name 1 to {}", losses.size(), kLossesMax));
  return losses;
}

int run_perf_loss(const PerfOptions& options, const PerfLoss& loss) {
  const auto rows = measure_all(options, loss);
  if (!rows) return report_error(rows.error());
  return put_out(options.output, *rows);
}

}  // namespace fairlead::tools
