#pragma once
// One side's contribution to a session.

#include <cstdint>

#include "wire/sequence.hpp"

namespace fairlead::link {

/// What the header of a hello tells besides. It is not authenticated, so it only serves texts for people.
struct Introduction {
  bool is_translated = false;  // an address of one side is translated on the way (NAT)
  std::uint32_t release = 0;   // of the peer: major << 16 | minor << 8 | patch; 0: unknown
};

struct Half {
  std::uint64_t token = 0;  // 64 secret bits that the peer's segments carry
  wire::Sequence first;     // sequence of this side's first data segment
};

}  // namespace fairlead::link
