#pragma once
// Our half of a session.

#include <cstdint>

#include "wire/sequence.hpp"

namespace fairlead::link {

struct Half {
  std::uint64_t token = 0;  // the peer's segments carry it: 64 secret bits
  wire::Sequence first;     // of our data
};

}  // namespace fairlead::link
