#pragma once
// Fails a queue pair that lost its peer. Used if the program ignores the connection manager's event about the loss.

#include <cstdint>

#include "doors/ibverbs/identity.hpp"

namespace fairlead::ibverbs {

/// Moves this device's queue pair `number` to ERR, which flushes its requests. Returns false unless it is connected to
/// `peer`.
bool fail_pair(const Identity& device, std::uint32_t number, std::uint32_t peer);

}  // namespace fairlead::ibverbs
