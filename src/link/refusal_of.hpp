#pragma once
// Why a hello is refused, as the handshake says it and as the link counts it.

#include "link/link_counters.hpp"
#include "seal/handshake.hpp"

namespace fairlead::link {

/// Under which reason a hello that is refused is counted.
Refusal refusal_of(seal::Refused refused);

}  // namespace fairlead::link
