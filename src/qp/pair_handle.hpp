#pragma once
// Names a queue pair of an engine for the APIs.

#include <cstdint>

namespace fairlead::qp {

struct PairHandle {
  std::uint32_t index = ~0U;
  std::uint32_t generation = 0;
  bool operator==(const PairHandle&) const = default;
};

}  // namespace fairlead::qp
