#pragma once
// Whole engines with queue pairs and active messages on virtual time, generated from one seed. The network loses,
// duplicates, reorders and corrupts, and is partitioned at times; hosts are killed and restarted, or their engines are
// replaced. On one machine a process may lie to the others (liar.hpp). pair_conversation.hpp and active_traffic.hpp
// state the invariants, which hold between honest hosts. At the end everything must be closed and nothing may be left.

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "sim/sabotage.hpp"

namespace fairlead::sim {

struct PairReport {
  std::optional<std::string> finding{};
  std::uint64_t hash = 0;                                            // over all events; equal for equal seeds
  base::Duration time{};                                             // simulated
  std::uint64_t succeeded = 0, failed = 0, openings = 0, kills = 0;  // requests, conversations, hosts
  std::uint64_t active_sent = 0, active_answered = 0;
  std::uint64_t replacements = 0;    // of engines
  std::uint64_t through_memory = 0;  // messages between processes of one machine
  std::uint64_t lies = 0, liars_expelled = 0;
};

/// Returns whether a process of this seed's world lies.
bool has_pair_liar(std::uint64_t seed);
PairReport run_pair_swarm(std::uint64_t seed, Sabotage::Kind sabotage = Sabotage::Kind::none);

}  // namespace fairlead::sim
