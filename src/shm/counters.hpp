#pragma once
// What happened between us and the peers of this host.

#include <array>
#include <cstdint>

#include "shm/cross_memory.hpp"

namespace fairlead::shm {

struct ConnectionCounters {
  std::uint64_t opened = 0, ended = 0;
  std::uint64_t declined_user = 0;      // of a user that we do not admit
  std::uint64_t declined_greeting = 0;  // not of our protocol
  std::uint64_t declined_address = 0;   // of an address that this host has not
  std::uint64_t declined_proof = 0;     // strangers who did not prove that they are who they said
  std::uint64_t declined_late = 0;      // no greeting, or no answer, in time
  std::uint64_t declined_crowd = 0;     // of a user with many connections that said nothing
  std::uint64_t accepts_failed = 0;     // the kernel had no descriptor, or no memory
  std::uint64_t put_out = 0;            // did not leave in time what was withdrawn
  std::uint64_t declined_full = 0;      // more peers than peers_max
  std::uint64_t refused_record = 0;     // a peer whose shared memory made no sense
  std::uint64_t sleeps = 0, unwatched = 0;
  std::uint64_t arenas_seen = 0;                                 // peers whose memory we can reach
  std::uint64_t arenas_refused = 0;                              // not of our protocol, or larger than ours
  std::array<std::uint64_t, CrossMemory::kDenials> processes{};  // of those, by why we cannot reach the rest of it
};

}  // namespace fairlead::shm
