#pragma once
// A swarm of applications of src/net on virtual time, generated from one seed. It exercises messages, bulk transfers,
// cancels, deadlines, buffer pools, buffers destroyed while queued, and machines that stop and restart. The network
// loses, duplicates and reorders, and is partitioned now and then. Invariants are checked at each event and at the end;
// most of them are statements of Motr's checklist.

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "sim/net_shared.hpp"

namespace fairlead::sim {

struct NetReport {
  std::optional<std::string> finding;
  std::uint64_t hash = 0;        // over all events; equal for equal seeds
  std::uint64_t operations = 0;  // accepted
  std::uint64_t succeeded = 0, restarts = 0;
  StatementCounts statements{};
  std::uint64_t through_memory = 0;  // messages between processes of one machine
  base::Duration time{};             // simulated
};

NetReport run_net_swarm(std::uint64_t seed);

}  // namespace fairlead::sim
