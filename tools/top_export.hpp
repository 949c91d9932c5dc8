#pragma once
// What `fairlead top` prints for programs.

#include <string>

#include "tools/top_engines.hpp"

namespace fairlead::tools {

/// {"engines": [...], "unreadable": [...]}; the names are those of the layout (docs/top.md).
std::string top_json(const SeenEngines& seen);

/// Each counter of each engine as text of the OpenMetrics format.
std::string top_openmetrics(const SeenEngines& seen);

}  // namespace fairlead::tools
