#pragma once
// By what two engines of different users know each other over a Unix socket: whoever has bound its name can be anybody,
// also of an address that is not his. So each shows that it knows a key which only the two ends of their session over
// the network can know (link::Link::pair_key), and says as which user the kernel will name it: what is passed on by a
// third shows another one.

#include <cstdint>

#include "base/sip_hash.hpp"
#include "shm/greeting.hpp"

namespace fairlead::shm {

/// Of a greeting. What is in its place does not count.
std::uint64_t proof_of_greeting(const base::SipKey& key, const Greeting& greeting);
/// Of the answer to a greeting, which nobody can give again to another one.
std::uint64_t proof_of_answer(const base::SipKey& key, const Greeting& answer, const Greeting& greeting);

}  // namespace fairlead::shm
