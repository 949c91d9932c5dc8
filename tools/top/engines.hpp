#pragma once
// The engines of this host, for `fairlead top` and `fairlead flight`.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include <fairlead/error.hpp>

#include "observe/stats_finder.hpp"

namespace fairlead::tools {

/// A snapshot of one engine. Its texts may contain any bytes.
struct SeenEngine {
  pid_t pid = 0;
  std::string program;
  bool is_fresh = false;  // false: the process did not answer
  observe::StatsView view;
};

/// An engine whose page cannot be read.
struct UnreadableEngine {
  pid_t pid = 0;
  std::string program;
  Error why;
};

struct SeenEngines {
  std::vector<SeenEngine> engines;
  std::vector<UnreadableEngine> unreadable;
};

/// Returns the engines of all processes, or of `only`. Returns an error if that process has none.
Result<SeenEngines> look_at_engines(std::optional<pid_t> only, bool wants_flights = false);

}  // namespace fairlead::tools
