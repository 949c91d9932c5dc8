#pragma once
// Maps the handshake's reason for refusing a hello to the link's counter.

#include "link/link_counters.hpp"
#include "seal/handshake.hpp"

namespace fairlead::link {

/// Returns the reason under which the link counts a refused hello.
Refusal refusal_of(seal::Refused refused);

}  // namespace fairlead::link
