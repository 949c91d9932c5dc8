#include "tools/perf/row_maker.hpp"

#include <algorithm>

namespace fairlead::tools {
namespace {

constexpr std::uint64_t kBytesInFlight = 1 << 20;  // default for bandwidth
constexpr std::uint32_t kMessagesInFlight = 512;   // default for rate

std::string_view name_of(PerfOp op) {
  return op == PerfOp::latency ? "latency" : op == PerfOp::bandwidth ? "bandwidth" : "rate";
}

}  // namespace

void PerfRowMaker::add(const PerfPiece& piece) {
  if (op_ != PerfOp::rate) times_.add(piece.times);
  add(static_cast<double>(piece.bytes) / piece.seconds, piece.cpu_seconds / static_cast<double>(piece.bytes) * 1e9);
}

void PerfRowMaker::add(const observe::StreamFloor& floor) {
  add(floor.gb_per_s * 1e9, floor.cpu_s_per_gb);
}

void PerfRowMaker::add(const observe::ExchangeFloor& floor, Duration time) {
  times_.add(floor.one_way);
  const double bytes = static_cast<double>(floor.one_way.count() * size_);
  const double seconds = std::chrono::duration<double>(time).count();
  add(bytes / seconds, 2 * seconds / bytes * 1e9);  // both sides spin all the time
}

PerfRow PerfRowMaker::row(double canary_ns) const {
  return {.op = std::string(name_.empty() ? name_of(op_) : name_),
          .path = path_,
          .size = size_,
          .times = times_.count() > 0 ? std::optional(times_) : std::nullopt,
          .gb_per_s = perf_median(bytes_per_s_) / 1e9,
          .messages_per_s = perf_median(bytes_per_s_) / static_cast<double>(size_),
          .cpu_s_per_gb = perf_median(cpu_s_per_gb_),
          .canary_ns = canary_ns};
}

void PerfRowMaker::add(double bytes_per_s, double cpu_s_per_gb) {
  bytes_per_s_.push_back(bytes_per_s);
  cpu_s_per_gb_.push_back(cpu_s_per_gb);
}

double perf_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double perf_ratio(PerfOp op, const PerfRow& ours, const PerfRow& other) {
  if (op != PerfOp::latency) return ours.gb_per_s / other.gb_per_s;
  const auto median_of = [](const PerfRow& row) {
    if (row.typical_us) return *row.typical_us * 1e3;
    return row.times ? static_cast<double>(row.times->percentile(50).count()) : 0;
  };
  return median_of(ours) / median_of(other);
}

std::uint32_t in_flight_of(const PerfOptions& options, std::uint64_t size) {
  if (options.in_flight > 0) return options.in_flight;
  if (options.op == PerfOp::rate) return kMessagesInFlight;
  // Over a wire, the next puts must be in flight. In shared memory, the initiator completes a put during submission,
  // and more of them only occupy more cache.
  const std::uint64_t least = options.path == "shm" ? 1 : 3;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kBytesInFlight / size, least, 64));
}

Result<PerfPiece> measure_perf(PerfNode& node, PerfFar& far, PerfOp op, const PerfTask& task) {
  switch (op) {
    case PerfOp::latency:
      return measure_latency(node, far, task);
    case PerfOp::bandwidth:
      return measure_bandwidth(node, far, task);
    case PerfOp::rate:
      break;
  }
  return measure_rate(node, far, task);
}

}  // namespace fairlead::tools
