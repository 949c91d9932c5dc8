#pragma once

#include <filesystem>

namespace fairlead::tools {

/// Where our libibverbs.so.1 lies: beside this command, in the build as below a prefix.
std::filesystem::path verbs_library();

}  // namespace fairlead::tools
