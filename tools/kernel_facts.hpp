#pragma once
// What the kernel says of itself in files of one line.

#include <cstdint>
#include <optional>
#include <string>

namespace fairlead::tools {

/// The first line of a file of /proc or /sys.
std::optional<std::string> line_of(const std::string& file);
std::optional<std::uint64_t> number_of(const std::string& file);

}  // namespace fairlead::tools
