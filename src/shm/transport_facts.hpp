#pragma once
// Adds the transport's and its connections' counters, and the peers that it reaches, to the engine's facts.

#include "observe/facts.hpp"
#include "shm/transport.hpp"

namespace fairlead::shm {

void add_transport(const Transport& shm, observe::EngineFacts& facts);

}  // namespace fairlead::shm
