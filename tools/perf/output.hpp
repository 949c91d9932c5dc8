#pragma once
// Where `fairlead perf` writes its rows: a table or JSON on standard output, and optionally a page.

#include <string>
#include <vector>

#include "tools/perf/counter_track.hpp"
#include "tools/perf/report.hpp"

namespace fairlead::tools {

struct PerfOutput {
  bool is_json = false;
  std::string page;    // file name; empty: none
  std::string server;  // the other side, for the page; empty: it is of this host
};

/// Returns the exit code.
int put_out(const PerfOutput& output, const std::vector<PerfRow>& rows, const std::vector<CounterLook>& counters = {});

}  // namespace fairlead::tools
