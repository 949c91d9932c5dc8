#pragma once
// Other projects' benchmark programs, as `fairlead perf --compare` runs them: their command lines, and how to read
// their output.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/perf/run.hpp"

namespace fairlead::tools {

/// What a rival shall measure.
struct RivalTask {
  PerfOp op = PerfOp::latency;
  std::uint64_t size = 8;
  Duration time{};
  std::array<int, 2> cpus{0, 1};
  std::uint16_t port = 0;  // free on loopback
};

/// Its result in our units.
struct RivalFigure {
  double one_way_us = 0;      // latency
  double gb_per_s = 0;        // bandwidth
  double messages_per_s = 0;  // rate
};

struct Rival {
  std::string_view name;     // of the row: "ucx-tcp"
  std::string_view program;  // the program to find
  std::string_view package;  // Debian's package
  std::string_view path;     // our path that it is compared with: "udp", "shm", or empty: each
  bool has_server;           // it is started twice: the first one is the server
  /// Returns the command line, empty if it cannot measure that. `is_server` selects the server's.
  std::vector<std::string> (*words)(const RivalTask& task, bool is_server);
  std::optional<RivalFigure> (*read)(const RivalTask& task, std::string_view output);
};

std::span<const Rival> all_rivals();

/// Runs a rival once. Returns `not_supported` if it cannot measure that, or `system`, with its output, if it failed.
Result<RivalFigure> run_rival(const Rival& rival, const RivalTask& task);

}  // namespace fairlead::tools
