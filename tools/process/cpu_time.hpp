#pragma once

#include <fairlead/time.hpp>

#include <sys/types.h>

#include <optional>

namespace fairlead::tools {

/// Returns the CPU time that a process, not only a child, has used; nullopt if there is no such process.
std::optional<Duration> cpu_time_of(pid_t process);

}  // namespace fairlead::tools
