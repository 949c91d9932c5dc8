#include "tools/perf_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "observe/canary.hpp"
#include "observe/floor.hpp"
#include "tools/command_line.hpp"
#include "tools/exit_code.hpp"
#include "tools/perf_near.hpp"
#include "tools/perf_report.hpp"

namespace fairlead::tools {
namespace {

constexpr int kRounds = 5;                         // ours and the floors take turns
constexpr std::uint64_t kBytesInFlight = 1 << 20;  // of bandwidth, where --in-flight does not say
constexpr std::uint32_t kMessagesInFlight = 512;   // of rate

std::string_view name_of(PerfOp op) {
  return op == PerfOp::latency ? "latency" : op == PerfOp::bandwidth ? "bandwidth" : "rate";
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// What the rounds of one row gave.
class RowMaker {
 public:
  RowMaker(PerfOp op, std::string path, std::uint64_t size) : op_(op), path_(std::move(path)), size_(size) {}

  void add(const PerfPiece& piece) {
    if (op_ != PerfOp::rate) times_.add(piece.times);
    add(static_cast<double>(piece.bytes) / piece.seconds, piece.cpu_seconds / static_cast<double>(piece.bytes) * 1e9);
  }
  void add(const observe::StreamFloor& floor) { add(floor.gb_per_s * 1e9, floor.cpu_s_per_gb); }
  void add(const observe::ExchangeFloor& floor, Duration time) {
    times_.add(floor.one_way);
    const double bytes = static_cast<double>(floor.one_way.count() * size_);
    const double seconds = std::chrono::duration<double>(time).count();
    add(bytes / seconds, 2 * seconds / bytes * 1e9);  // both spin all the time
  }

  PerfRow row(double canary_ns) const {
    return {.op = std::string(name_of(op_)),
            .path = path_,
            .size = size_,
            .times = times_.count() > 0 ? std::optional(times_) : std::nullopt,
            .gb_per_s = median(bytes_per_s_) / 1e9,
            .messages_per_s = median(bytes_per_s_) / static_cast<double>(size_),
            .cpu_s_per_gb = median(cpu_s_per_gb_),
            .canary_ns = canary_ns,
            .ratio = std::nullopt};
  }

 private:
  void add(double bytes_per_s, double cpu_s_per_gb) {
    bytes_per_s_.push_back(bytes_per_s);
    cpu_s_per_gb_.push_back(cpu_s_per_gb);
  }

  PerfOp op_;
  std::string path_;
  std::uint64_t size_;
  observe::Histogram times_;
  std::vector<double> bytes_per_s_, cpu_s_per_gb_;
};

std::uint32_t in_flight_of(const PerfOptions& options, std::uint64_t size) {
  if (options.in_flight > 0) return options.in_flight;
  if (options.op == PerfOp::rate) return kMessagesInFlight;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kBytesInFlight / size, 3, 64));
}

Result<PerfPiece> measure(PerfNode& node, PerfFar& far, const PerfOptions& options, std::uint64_t size, Duration time) {
  switch (options.op) {
    case PerfOp::latency:
      return measure_latency(node, far, size, time);
    case PerfOp::bandwidth:
      return measure_bandwidth(node, far, size, in_flight_of(options, size), time);
    case PerfOp::rate:
      break;
  }
  return measure_rate(node, far, size, in_flight_of(options, size), time);
}

Result<> measure_floors(const PerfOptions& options, std::uint64_t size, Duration time, RowMaker& udp, RowMaker& tcp) {
  const observe::FloorOptions floor{.bytes = static_cast<std::uint32_t>(size),
                                    .duration = time,
                                    .cpu_near = options.cpus[0],
                                    .cpu_far = options.cpus[1]};
  if (options.op == PerfOp::latency) {
    const auto exchange = observe::floor_udp_exchange(floor);
    if (!exchange) return std::unexpected(exchange.error());
    udp.add(*exchange, time);
    return {};
  }
  const auto udp_stream = observe::floor_udp_stream(floor);
  if (!udp_stream) return std::unexpected(udp_stream.error());
  udp.add(*udp_stream);
  const auto tcp_stream = observe::floor_tcp_stream(floor);
  if (!tcp_stream) return std::unexpected(tcp_stream.error());
  tcp.add(*tcp_stream);
  return {};
}

double ratio(PerfOp op, const PerfRow& ours, const PerfRow& floor) {
  if (op != PerfOp::latency) return ours.gb_per_s / floor.gb_per_s;
  const auto median_of = [](const PerfRow& row) {
    return row.times ? static_cast<double>(row.times->percentile(50).count()) : 0;
  };
  return median_of(ours) / median_of(floor);
}

Result<> add_rows(PerfNode& node, PerfFar& far, const PerfOptions& options, std::uint64_t size,
                  std::vector<PerfRow>& rows) {
  const bool has_floors = options.is_udp && options.has_floors;
  const Duration piece = options.time / kRounds;
  RowMaker ours(options.op, options.is_udp ? "udp" : "self", size);
  RowMaker udp(options.op, "floor-udp", size), tcp(options.op, "floor-tcp", size);
  std::vector<double> canaries;
  std::uint64_t dropped = 0;
  for (int round = 0; round < kRounds; ++round) {
    canaries.push_back(static_cast<double>(observe::line_transfer_time(options.cpus[0], options.cpus[1]).count()));
    auto measured = measure(node, far, options, size, piece);
    if (!measured) return std::unexpected(std::move(measured.error()));
    ours.add(*measured);
    dropped += measured->dropped;
    if (!has_floors) continue;
    if (auto floors = measure_floors(options, size, piece, udp, tcp); !floors) return floors;
  }
  const double canary = median(canaries);
  rows.push_back(ours.row(canary));
  if (dropped > 0) fmt::print(stderr, "fairlead: {} messages of {} bytes found no receive buffer\n", dropped, size);
  if (!has_floors) return {};
  const PerfRow own = rows.back();
  rows.push_back(udp.row(canary));
  rows.back().ratio = ratio(options.op, own, rows.back());
  if (options.op == PerfOp::latency) return {};
  rows.push_back(tcp.row(canary));
  rows.back().ratio = ratio(options.op, own, rows.back());
  return {};
}

}  // namespace

int run_perf(const PerfOptions& options) {
  const std::string address = options.is_udp ? "127.0.0.1@udp:*:39:*" : "0@lo:20480:39:*";
  for (const int cpu : {options.cpus[1], options.cpus[0]}) {
    if (!pin_thread(cpu))
      return report_error({Status::invalid, 0, fmt::format("processor {} is not ours: name two with --cpus", cpu)});
  }
  auto far = PerfFar::start(address, options.cpus[1], options.is_udp);
  if (!far) return report_error(far.error());
  auto domain = net::Domain::open();
  if (!domain) return report_error(domain.error());
  PerfNode node(*domain);
  if (auto started = node.start(address); !started) return report_error(started.error());

  std::vector<PerfRow> rows;
  for (const std::uint64_t size : options.sizes) {
    if (auto added = add_rows(node, **far, options, size, rows); !added) return report_error(added.error());
  }
  fmt::print("{}", options.is_json ? perf_json(rows) : perf_table(rows));
  return kExitOk;
}

}  // namespace fairlead::tools
