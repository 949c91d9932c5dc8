#pragma once
// The limits of one application at the host engine.

#include <cstdint>

#include "host/layout.hpp"
#include "host/pair_layout.hpp"

namespace fairlead::host {

struct Quota {
  static constexpr std::uint32_t kEventsDefault = 262144;

  std::uint32_t ports = kPortsMax;
  std::uint32_t operations = kOperationsMax;          // pending
  std::uint64_t bytes_per_second = 0;                 // sent and received; 0: no limit
  std::uint32_t number_first = 0, number_last = ~0U;  // range of ports that it may open
  std::uint32_t pairs = kPairsMax;                    // queue pairs
  std::uint64_t queue_bytes = kQueueBytesMax;         // the host engine's memory for their posted requests
  std::uint32_t events = kEventsDefault;              // reserved, of all ports: 72 bytes of memory each
  std::uint64_t registered_bytes = 0;                 // of memory regions; 0: no limit
  bool operator==(const Quota&) const = default;
};

}  // namespace fairlead::host
