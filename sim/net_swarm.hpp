#pragma once
// A crowd of applications on the net face, on virtual time, all drawn from one seed: messages, bulk transfers,
// cancels, deadlines, buffers that go while queued, machines that stop and start again, over a network that loses,
// repeats and reorders, and falls apart now and then. What has to hold is checked at each event and at the end.

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"

namespace fairlead::sim {

struct NetReport {
  std::optional<std::string> finding;
  std::uint64_t hash = 0;        // of all events: the same seed gives the same
  std::uint64_t operations = 0;  // accepted
  std::uint64_t succeeded = 0, restarts = 0;
  std::uint64_t through_memory = 0;  // messages between processes of one machine
  base::Duration time{};             // simulated
};

NetReport run_net_swarm(std::uint64_t seed);

}  // namespace fairlead::sim
