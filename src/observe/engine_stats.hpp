#pragma once
// What an engine shows to other processes (observe/stats_page.hpp): its facts, and one entry per port, queue pair and
// flight. No keys and no tokens.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/socket_address.hpp"
#include "observe/facts.hpp"
#include "observe/flight_event.hpp"

namespace fairlead::observe {

struct PortFact {
  std::uint32_t number = 0;
  std::uint32_t operations = 0;  // not completed yet
  std::uint64_t dropped_no_buffer = 0;
  bool takes_active = false;
};

struct PairFact {
  std::uint32_t number = 0;
  std::uint32_t peer_number = 0;
  std::string_view type;  // "RC"
  std::string_view state;
  base::SocketAddress peer;
  std::uint32_t requests = 0;  // posted and not completed
  std::uint32_t in_flight = 0;
};

struct PeerFlight {
  base::SocketAddress peer;
  std::uint64_t recorded = 0;  // since its ring was assigned
  std::vector<FlightEvent> events;
};

struct EngineStats {
  static constexpr std::size_t kMost = 1024;  // of ports and of pairs; the totals count all

  EngineFacts facts;
  std::vector<PortFact> ports;
  std::size_t ports_total = 0;
  std::vector<PairFact> pairs;
  std::size_t pairs_total = 0;
  std::vector<PeerFlight> flights;  // only if they were asked for
};

}  // namespace fairlead::observe
