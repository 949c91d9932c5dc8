#pragma once

#include <filesystem>

namespace fairlead::tools {

/// Returns the path of our libibverbs.so.1: next to this command in the build, or below the installation prefix.
std::filesystem::path verbs_library();

}  // namespace fairlead::tools
