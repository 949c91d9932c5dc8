#pragma once
// A scenario drawn from a seed. "Swarm": each seed leaves most kinds of trouble out, so that those it has can be
// met in depth (a host that restarts every second never gets to fill a window).

#include <cstdint>

#include "sim/scenario.hpp"

namespace fairlead::sim {

Scenario draw_scenario(std::uint64_t seed);

}  // namespace fairlead::sim
