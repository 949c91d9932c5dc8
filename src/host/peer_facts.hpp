#pragma once
// The answer to the call peer_facts.

#include "host/call.hpp"
#include "transport/peer_facts.hpp"

namespace fairlead::host {

Answer answer_facts(const transport::PeerFacts& facts);
/// Any answer is safe: an unknown problem is `other`.
transport::PeerFacts facts_from(const Answer& answer);

}  // namespace fairlead::host
