#pragma once
// Checks of this host. They inspect and try, but change nothing.

#include <filesystem>

#include "tools/doctor/finding.hpp"

namespace fairlead::tools {

/// `library` is the libibverbs.so.1 of `fairlead run`.
Findings examine_host(const std::filesystem::path& library);

void examine_network(Findings& findings);
void examine_memory(Findings& findings);
/// RDMA devices, and the settings of unmodified verbs programs.
void examine_devices(Findings& findings);

}  // namespace fairlead::tools
