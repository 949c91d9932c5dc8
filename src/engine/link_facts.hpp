#pragma once
// The link's counters under their printed names.

#include "link/link_counters.hpp"
#include "observe/facts.hpp"

namespace fairlead::engine {

void add_link_counters(const link::LinkCounters& counters, observe::EngineFacts& facts);

}  // namespace fairlead::engine
