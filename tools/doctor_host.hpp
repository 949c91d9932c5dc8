#pragma once
// What Fairlead finds on this host: looked at and tried, never changed.

#include <filesystem>

#include "tools/doctor_finding.hpp"

namespace fairlead::tools {

/// `library`: the libibverbs.so.1 of `fairlead run`.
Findings examine_host(const std::filesystem::path& library);

void examine_network(Findings& findings);
void examine_memory(Findings& findings);

}  // namespace fairlead::tools
