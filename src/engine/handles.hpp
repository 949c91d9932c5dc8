#pragma once
// What names an open port and a submitted operation. One that has ended is found no more, though its place may be in
// use again.

#include <cstdint>

#include "link/operation_handle.hpp"

namespace fairlead::engine {

/// An opened port; index + generation.
struct PortHandle {
  std::uint32_t slot = ~0U;
  std::uint32_t generation = 0;
  bool operator==(const PortHandle&) const = default;
};

using link::OperationHandle;

}  // namespace fairlead::engine
