#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "link/link_options.hpp"

namespace fairlead::shm {

struct TransportOptions {
  bool is_forced = false;           // shared memory is the only transport: messages wait until the peer is found
  base::Duration give_up_after{};   // limit for a peer without progress while something is pending to or from it
  base::Duration connect_within{};  // limit for finding a peer, if is_forced
  std::size_t copied_max =
      link::LinkOptions{}.embedded_max;      // bytes; longest message that is copied at submission, at most a Block
  std::size_t waiting_max = 65536;           // messages per peer that wait for room
  std::uint64_t pull_min = 0, pull_max = 0;  // bytes; messages by reference, read in our arena instead of sent
};

}  // namespace fairlead::shm
