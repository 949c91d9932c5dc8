#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.hpp"
#include "link/link_options.hpp"

namespace fairlead::shm {

struct TransportOptions {
  bool is_forced = false;           // there is no other way: messages wait until the peer is found
  base::Duration give_up_after{};   // without progress of a peer that something is pending to, or from
  base::Duration connect_within{};  // of a peer that is not there, if is_forced
  std::size_t copied_max =
      link::LinkOptions{}.embedded_max;      // longest message that is copied at submission, at most a Block
  std::size_t waiting_max = 65536;           // messages that wait for room, of one peer
  std::uint64_t pull_min = 0, pull_max = 0;  // messages that lie in our arena and are read there, not sent
};

}  // namespace fairlead::shm
