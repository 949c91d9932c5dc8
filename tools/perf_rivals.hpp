#pragma once
// Other people's measuring programs, found on this machine or not, as `fairlead perf --compare` runs them: which words,
// and which number of what they print.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/perf_run.hpp"

namespace fairlead::tools {

/// What a rival is asked for.
struct RivalTask {
  PerfOp op = PerfOp::latency;
  std::uint64_t size = 8;
  Duration time{};
  std::array<int, 2> cpus{0, 1};
  std::uint16_t port = 0;  // free on the loopback
};

/// What it said, in our units.
struct RivalFigure {
  double one_way_us = 0;      // latency
  double gb_per_s = 0;        // bandwidth
  double messages_per_s = 0;  // rate
};

struct Rival {
  std::string_view name;     // of the row: "ucx-tcp"
  std::string_view program;  // that has to be found
  std::string_view package;  // of Debian
  std::string_view path;     // ours that it stands beside: "udp", "shm", or empty: each
  bool has_server;           // is started twice: the first one waits
  /// Its words, empty if it cannot measure that. `is_server`: of the first of the two.
  std::vector<std::string> (*words)(const RivalTask& task, bool is_server);
  std::optional<RivalFigure> (*read)(const RivalTask& task, std::string_view output);
};

std::span<const Rival> all_rivals();

/// Runs it once. not_supported: it cannot measure that; system: it did not do what it should, with its words.
Result<RivalFigure> run_rival(const Rival& rival, const RivalTask& task);

}  // namespace fairlead::tools
