#pragma once
// The engines of this host that `fairlead top` and `fairlead flight` show.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include <fairlead/error.hpp>

#include "observe/stats_finder.hpp"

namespace fairlead::tools {

/// One engine, as it was at one moment. Its texts may hold any bytes.
struct SeenEngine {
  pid_t pid = 0;
  std::string program;
  bool is_fresh = false;  // else the process did not answer
  observe::StatsView view;
};

/// One whose page cannot be read.
struct UnreadableEngine {
  pid_t pid = 0;
  std::string program;
  Error why;
};

struct SeenEngines {
  std::vector<SeenEngine> engines;
  std::vector<UnreadableEngine> unreadable;
};

/// Of all processes, or an error that says why there is none in the one that was named.
Result<SeenEngines> look_at_engines(std::optional<pid_t> only, bool wants_flights = false);

}  // namespace fairlead::tools
