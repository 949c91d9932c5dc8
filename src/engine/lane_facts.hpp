#pragma once
// What the lane and its hub count, under their printed names, and whom it reaches.

#include "engine/facts.hpp"
#include "engine/lane.hpp"

namespace fairlead::engine {

void add_lane(const Lane& lane, EngineFacts& facts);

}  // namespace fairlead::engine
