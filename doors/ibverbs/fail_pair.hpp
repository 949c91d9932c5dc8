#pragma once
// A queue pair that lost its peer, and whose program was told so by the connection manager and did nothing.

#include <cstdint>

#include "doors/ibverbs/identity.hpp"

namespace fairlead::ibverbs {

/// Takes this device's queue pair `number` to ERR, which flushes what waits in it; false unless it is connected to
/// `peer`.
bool fail_pair(const Identity& device, std::uint32_t number, std::uint32_t peer);

}  // namespace fairlead::ibverbs
