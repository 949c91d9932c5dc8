#pragma once
// `fairlead version`.

#include <string>

namespace fairlead::tools {

/// Returns for example "fairlead 0.2.0 (GCC 12.2.0)".
std::string version_text();

}  // namespace fairlead::tools
