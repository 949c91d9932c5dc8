#pragma once
// What a lying process has found out about a queue pair of two other processes. With it a record looks as if the
// partner had sent it; only the connection over which it comes says that another process did.

#include <cstdint>
#include <vector>

#include "base/socket_address.hpp"

namespace fairlead::sim {

struct PairSecret {
  base::SocketAddress victim;  // of the engine that owns the queue pair `target`
  std::uint32_t source = 0;    // the number of its partner
  std::uint32_t target = 0;    // its own number
  std::uint32_t rkey = 0;      // of the victim's region
  std::uint32_t sequence = 0;  // of the request that comes next, or is about to be answered
  std::uint64_t address = 0;   // memory of the victim with the right `rkey`
  std::uint64_t bytes = 0;     // so much of it
};
using PairSecrets = std::vector<PairSecret>;

}  // namespace fairlead::sim
