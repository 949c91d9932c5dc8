#pragma once
// `fairlead perf --server`: the far side for measurements from other hosts. Each client gets a process of its own, one
// client at a time; others are told to wait. The server reads nothing from clients: their process does.

#include <cstdint>
#include <string>

#include "tools/perf/far.hpp"

namespace fairlead::tools {

struct PerfServerOptions {
  std::string bind = "::";  // IP address; "::" takes IPv4, too
  std::uint16_t port = kPerfPort;
  int cpu = -1;  // processor of the far side; negative: any
  EngineSettings engine;
};

/// Runs until Ctrl-C, its normal end. Returns the exit code.
int run_perf_server(const PerfServerOptions& options);

}  // namespace fairlead::tools
