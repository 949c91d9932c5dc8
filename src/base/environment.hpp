#pragma once
// The environment, as far as it may be believed. It is the caller's: a program with rights that its caller does not
// have (set-user-id, set-group-id, file capabilities) takes no orders from it. Nothing else of ours reads it.

#include <string_view>
#include <vector>

namespace fairlead::base {

/// False in a program with rights that its caller does not have.
bool may_believe_environment() noexcept;

/// The value of a variable; null if it is not set, or may not be believed.
const char* environment(const char* name) noexcept;

/// All of it, "NAME=value" each; nothing if it may not be believed. Not while another thread changes it.
std::vector<std::string_view> whole_environment();

}  // namespace fairlead::base
