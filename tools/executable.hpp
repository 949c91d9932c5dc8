#pragma once
// Whether a program can be given a library by LD_PRELOAD, told before it runs and silently misses it.

#include <optional>
#include <string>

namespace fairlead::tools {

/// The file that a shell would start for this word.
std::optional<std::string> find_executable(const std::string& word);

/// Why a preload does not reach this file, with the remedy; nothing if it does (scripts count by their interpreter).
std::optional<std::string> preload_obstacle(const std::string& file);

}  // namespace fairlead::tools
