#pragma once
// `fairlead perf verbs`: a reliable connection of queue pairs between two processes.

#include <fairlead/time.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/perf/output.hpp"
#include "tools/perf/verbs_end.hpp"

namespace fairlead::tools {

struct PerfVerbsOptions {
  VerbsOp op = VerbsOp::send;
  bool is_stream = false;  // `depth` requests at a time; else one
  std::vector<std::uint64_t> sizes;
  Duration time = std::chrono::seconds{1};  // per row
  std::string server;                       // address of a `fairlead perf --server`; empty: a second process
  std::string path = "udp";                 // or shm
  std::uint32_t depth = 64;
  std::vector<int> cpus;  // near and far
  bool has_floors = true;
  PerfOutput output;
  EngineSettings engine;
};

int run_perf_verbs(const PerfVerbsOptions& options);

}  // namespace fairlead::tools
