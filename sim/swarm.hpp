#pragma once
// Generates a scenario from a seed. As in swarm testing, each seed omits most kinds of trouble, so that it meets the
// rest in depth. For instance, a host that restarts every second never fills a window.

#include <cstdint>

#include "sim/scenario.hpp"

namespace fairlead::sim {

Scenario draw_scenario(std::uint64_t seed);

}  // namespace fairlead::sim
