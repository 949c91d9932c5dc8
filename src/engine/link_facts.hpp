#pragma once
// The link's counters under their printed names.

#include "engine/facts.hpp"
#include "link/link_counters.hpp"

namespace fairlead::engine {

void add_link_counters(const link::LinkCounters& counters, EngineFacts& facts);

}  // namespace fairlead::engine
