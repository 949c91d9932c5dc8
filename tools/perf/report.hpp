#pragma once
// Rows of `fairlead perf`, as a table or as JSON (docs/perf.md describes the keys).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "observe/histogram.hpp"

namespace fairlead::tools {

struct PerfRow {
  std::string op;    // latency, bandwidth, rate
  std::string path;  // udp, self, floor-udp, floor-tcp
  std::uint64_t size = 0;
  std::optional<observe::Histogram> times;
  double gb_per_s = 0;
  double messages_per_s = 0;
  double cpu_s_per_gb = 0;
  double canary_ns = 0;                   // 0: between hosts there is none
  std::optional<double> ratio = {};       // ours to this floor: of times for latency, else of throughput
  std::optional<double> typical_us = {};  // of programs that report only one figure; if there are no times
  std::optional<double> loss = {};        // the configured fraction of lost packets
  double lost = 0;                        // the measured fraction
};

std::string perf_table(const std::vector<PerfRow>& rows);
std::string perf_json(const std::vector<PerfRow>& rows);
nlohmann::ordered_json perf_row_json(const PerfRow& row);

}  // namespace fairlead::tools
