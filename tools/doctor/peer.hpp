#pragma once
// Checks between this host and another: an engine started here probes the other one.

#include <string>
#include <vector>

#include "tools/doctor/finding.hpp"

namespace fairlead::tools {

/// Starts an engine. With `peer` (HOST, HOST@udp:PORT, or a full address) sends so many probes, one after the other.
/// Reports whether an engine answers, how fast, and the loss on the way.
Findings examine_engine(const std::string& peer, unsigned probes);

}  // namespace fairlead::tools
