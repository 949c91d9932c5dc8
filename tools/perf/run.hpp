#pragma once
// Runs one kind of measurement over a list of sizes, each interleaved with its floors.

#include <fairlead/time.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/output.hpp"

namespace fairlead::tools {

enum class PerfOp : std::uint8_t { latency, bandwidth, rate };

struct PerfOptions {
  PerfOp op = PerfOp::latency;
  std::string server;        // HOST[:PORT] of a `fairlead perf --server`; empty: a second process or thread
  std::string path = "udp";  // udp and shm: between two processes; self: inside one
  std::vector<std::uint64_t> sizes;
  Duration time = std::chrono::seconds{2};  // per row
  std::uint32_t in_flight = 0;              // 0: chosen by size
  std::vector<int> cpus;                    // near and far
  bool is_loan = false;                     // for latency: passes messages by reference
  bool has_floors = true;
  bool has_rivals = false;
  PerfOutput output;
};

int run_perf(const PerfOptions& options);

}  // namespace fairlead::tools
