#pragma once
// What Fairlead finds between this host and another: an engine of its own asks the other one.

#include <string>
#include <vector>

#include "tools/doctor_finding.hpp"

namespace fairlead::tools {

/// An engine starts here. With `peer` (HOST, HOST@udp:PORT, or a full address) it asks there so many times, one after
/// the other: whether one answers, how fast, and what is lost on the way.
Findings examine_engine(const std::string& peer, unsigned probes);

}  // namespace fairlead::tools
