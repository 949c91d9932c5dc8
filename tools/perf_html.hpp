#pragma once
// What `fairlead perf` measured as one file for a browser: no other file, no network.

#include <string>
#include <utility>
#include <vector>

#include "tools/counter_track.hpp"
#include "tools/perf_report.hpp"

namespace fairlead::tools {

struct PerfPage {
  std::vector<PerfRow> rows;
  std::vector<CounterLook> counters;
  std::vector<std::pair<std::string, std::string>> environment;
};

std::string perf_html(const PerfPage& page);

/// Of this host and this command: what a reader of the figures asks for.
std::vector<std::pair<std::string, std::string>> perf_environment();

}  // namespace fairlead::tools
