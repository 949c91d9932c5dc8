#pragma once
// `fairlead perf am`: active messages between two processes, as round trips or one way.

#include <fairlead/time.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/perf/output.hpp"

namespace fairlead::tools {

enum class AmKind : std::uint8_t { brief, medium, large };  // short, medium, long

struct PerfAmOptions {
  AmKind kind = AmKind::medium;
  bool is_one_way = false;  // many requests at a time; else one request and its short reply
  std::vector<std::uint64_t> sizes;
  Duration time = std::chrono::seconds{1};  // per row
  std::string path = "udp";                 // or shm
  std::uint32_t depth = 128;                // outstanding requests, one way
  std::vector<int> cpus;                    // near and far
  bool has_floors = true;
  PerfOutput output;
  std::vector<std::pair<std::string, std::string>> engine;
};

int run_perf_am(const PerfAmOptions& options);

}  // namespace fairlead::tools
