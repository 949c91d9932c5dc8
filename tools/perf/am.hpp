#pragma once
// `fairlead perf am`: active messages between two processes, as round trips or one way.

#include <fairlead/time.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/perf/am_end.hpp"
#include "tools/perf/output.hpp"

namespace fairlead::tools {

struct PerfAmOptions {
  AmKind kind = AmKind::medium;
  bool is_one_way = false;  // many requests at a time; else one request and its short reply
  std::vector<std::uint64_t> sizes;
  Duration time = std::chrono::seconds{1};  // per row
  std::string server;                       // address of a `fairlead perf --server`; empty: a second process
  std::string path = "udp";                 // or shm
  std::uint32_t depth = 128;                // outstanding requests, one way
  std::vector<int> cpus;                    // near and far
  bool is_unpacked = false;
  bool has_floors = true;
  PerfOutput output;
  EngineSettings engine;
};

int run_perf_am(const PerfAmOptions& options);

}  // namespace fairlead::tools
