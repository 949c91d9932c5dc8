#pragma once
// Handles of open ports and of submitted operations. A handle becomes stale when its object ends, even if another
// object uses the slot again.

#include <cstdint>

#include "link/operation_handle.hpp"

namespace fairlead::engine {

/// An open port: index and generation.
struct PortHandle {
  std::uint32_t slot = ~0U;
  std::uint32_t generation = 0;
  bool operator==(const PortHandle&) const = default;
};

using link::OperationHandle;

}  // namespace fairlead::engine
