#pragma once
// Reads one-line files in /proc and /sys.

#include <cstdint>
#include <optional>
#include <string>

namespace fairlead::tools {

/// Returns the first line of a file; number_of() converts it to a number.
std::optional<std::string> line_of(const std::string& file);
std::optional<std::uint64_t> number_of(const std::string& file);

}  // namespace fairlead::tools
