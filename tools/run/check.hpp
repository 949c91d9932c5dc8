#pragma once
// `fairlead run --check`: what a program will need of an RDMA device, before it runs.

#include <string>

#include "tools/doctor/finding.hpp"

namespace fairlead::tools {

/// Examines the file that a shell would start for this word, and the libraries that it links. Nothing is executed but
/// the dynamic loader, which lists them.
Findings examine_program(const std::string& word);

}  // namespace fairlead::tools
