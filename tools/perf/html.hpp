#pragma once
// The results of `fairlead perf` as one self-contained HTML file.

#include <string>
#include <utility>
#include <vector>

#include "tools/perf/counter_track.hpp"
#include "tools/perf/report.hpp"

namespace fairlead::tools {

struct PerfPage {
  std::vector<PerfRow> rows;
  std::vector<CounterLook> counters;
  std::vector<std::pair<std::string, std::string>> environment;
};

std::string perf_html(const PerfPage& page);

/// Returns facts of this host and command that a reader of the figures needs.
std::vector<std::pair<std::string, std::string>> perf_environment();

}  // namespace fairlead::tools
