#pragma once
// Authenticates engines of different users over a Unix socket. Any process can bind a socket name, even for an address
// that is not its own. Each engine therefore proves that it knows a key which only the two ends of their network
// session know (link::Link::pair_key). The proof also covers the user id that the kernel reports for the sender, so a
// third process cannot relay it.

#include <cstdint>

#include "base/sip_hash.hpp"
#include "shm/greeting.hpp"

namespace fairlead::shm {

/// Returns the proof for a greeting. The greeting's own `proof` field does not enter.
std::uint64_t proof_of_greeting(const base::SipKey& key, const Greeting& greeting);
/// Returns the proof for the answer to a greeting. It is bound to that greeting, so it cannot be replayed to another
/// one.
std::uint64_t proof_of_answer(const base::SipKey& key, const Greeting& answer, const Greeting& greeting);

}  // namespace fairlead::shm
