#pragma once
// The file of a program. Checks before it runs whether LD_PRELOAD can add a library to it. Otherwise the program would
// silently miss the library.

#include <optional>
#include <string>
#include <string_view>

namespace fairlead::tools {

/// Where programs are that administrators use: not in the PATH of every user.
inline constexpr std::string_view kSystemFolders = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// Returns the file that a shell would start for this word. `folders` are searched after those of PATH, with colons
/// between them.
std::optional<std::string> find_executable(const std::string& word, std::string_view folders = {});

/// Returns the program that the kernel starts for this file: for a script its interpreter, else the file itself.
std::string program_of(const std::string& file);

/// Returns why a preload does not reach this file, with the remedy, or nullopt if it does. For a script, its
/// interpreter is checked.
std::optional<std::string> preload_obstacle(const std::string& file);

}  // namespace fairlead::tools
