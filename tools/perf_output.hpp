#pragma once
// Where the rows of `fairlead perf` go: a table or JSON on standard output, and a page if one was asked for.

#include <string>
#include <vector>

#include "tools/counter_track.hpp"
#include "tools/perf_report.hpp"

namespace fairlead::tools {

struct PerfOutput {
  bool is_json = false;
  std::string page;  // a file; empty: none
};

/// The exit code.
int put_out(const PerfOutput& output, const std::vector<PerfRow>& rows, const std::vector<CounterLook>& counters = {});

}  // namespace fairlead::tools
