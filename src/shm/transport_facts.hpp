#pragma once
// What the transport and its connections count, under their printed names, and whom it reaches.

#include "observe/facts.hpp"
#include "shm/transport.hpp"

namespace fairlead::shm {

void add_transport(const Transport& shm, observe::EngineFacts& facts);

}  // namespace fairlead::shm
