#pragma once
// One side's contribution to a session.

#include <cstdint>

#include "wire/sequence.hpp"

namespace fairlead::link {

struct Half {
  std::uint64_t token = 0;  // 64 secret bits that the peer's segments carry
  wire::Sequence first;     // sequence of this side's first data segment
};

}  // namespace fairlead::link
