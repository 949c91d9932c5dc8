#pragma once
// What the lane and its hub count, under their printed names, and whom it reaches.

#include "observe/facts.hpp"
#include "shm/lane.hpp"

namespace fairlead::shm {

void add_lane(const Lane& lane, observe::EngineFacts& facts);

}  // namespace fairlead::shm
