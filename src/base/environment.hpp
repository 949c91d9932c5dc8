#pragma once
// The environment, if it can be trusted. The caller controls it, so a program with rights that its caller lacks
// (set-user-id, set-group-id, file capabilities) ignores it. The library reads it only here.

#include <string_view>
#include <vector>

namespace fairlead::base {

/// Returns false in a program with rights that its caller lacks.
bool may_believe_environment() noexcept;

/// Returns the value of a variable; null if it is not set or not trusted.
const char* environment(const char* name) noexcept;

/// Returns all variables as "NAME=value"; nothing if they are not trusted. No other thread may change the environment
/// meanwhile.
std::vector<std::string_view> whole_environment();

}  // namespace fairlead::base
