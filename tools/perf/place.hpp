#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fairlead::tools {

using EngineSettings = std::vector<std::pair<std::string, std::string>>;

/// Where one side measures, and how.
struct PerfPlace {
  std::string host = "127.0.0.1";  // its own address, without a port; "0@lo": in the engine of this process
  int cpu = -1;                    // its processor; negative: any
  EngineSettings engine = {};
};

}  // namespace fairlead::tools
