#pragma once
// What names an open port and a submitted operation. One that has ended is found no more, though its place may be in
// use again.

#include <cstdint>

#include "base/time.hpp"

namespace fairlead::engine {

/// An opened port; index + generation.
struct PortHandle {
  std::uint32_t slot = ~0U;
  std::uint32_t generation = 0;
  bool operator==(const PortHandle&) const = default;
};

/// A submitted operation; index + generation, so that a late cancel simply misses.
struct OperationHandle {
  std::uint32_t slot = ~0U;
  std::uint32_t generation = 0;
  base::Instant at{};  // when it was submitted, by the engine's clock; unset if the engine had no need to know
  bool operator==(const OperationHandle&) const = default;
};

}  // namespace fairlead::engine
