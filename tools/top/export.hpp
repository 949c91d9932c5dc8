#pragma once
// The output of `fairlead top` for programs.

#include <string>

#include "tools/top/engines.hpp"

namespace fairlead::tools {

/// Returns {"engines": [...], "unreadable": [...]}, with the names of the layout (docs/top.md).
std::string top_json(const SeenEngines& seen);

/// Returns each counter of each engine in the OpenMetrics text format.
std::string top_openmetrics(const SeenEngines& seen);

}  // namespace fairlead::tools
