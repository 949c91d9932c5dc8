#pragma once
// Combines the pieces of a measurement into one row.

#include <string>
#include <vector>

#include "observe/floor.hpp"
#include "tools/perf/near.hpp"
#include "tools/perf/report.hpp"
#include "tools/perf/run.hpp"

namespace fairlead::tools {

inline constexpr int kPerfRounds = 5;  // pieces of a row, interleaved with floors and rivals

class PerfRowMaker {
 public:
  PerfRowMaker(PerfOp op, std::string path, std::uint64_t size, std::string_view name = {})
      : op_(op), name_(name), path_(std::move(path)), size_(size) {}

  void add(const PerfPiece& piece);
  void add(const observe::StreamFloor& floor);
  void add(const observe::ExchangeFloor& floor, Duration time);

  /// Returns the times of all pieces together, and the medians of the rest.
  PerfRow row(double canary_ns) const;

 private:
  void add(double bytes_per_s, double cpu_s_per_gb);

  PerfOp op_;
  std::string_view name_;  // name of the row; empty: the operation's
  std::string path_;
  std::uint64_t size_;
  observe::Histogram times_;
  std::vector<double> bytes_per_s_, cpu_s_per_gb_;
};

double perf_median(std::vector<double> values);

/// Returns the ratio of ours to the other's: of the median times, or of the throughput.
double perf_ratio(PerfOp op, const PerfRow& ours, const PerfRow& other);

/// Returns --in-flight, or a default for this size.
std::uint32_t in_flight_of(const PerfOptions& options, std::uint64_t size);

Result<PerfPiece> measure_perf(PerfNode& node, PerfFar& far, PerfOp op, const PerfTask& task);

}  // namespace fairlead::tools
