#pragma once
// The keys with which a world's hosts seal, derived from their numbers and known to all. Also an encryption for
// Sabotage that does not authenticate the header.

#include <cstdint>
#include <optional>

#include "link/seal_settings.hpp"
#include "sim/scenario.hpp"

namespace fairlead::sim {

/// Combined with a seed, decides whether its world is sealed without changing the rest of that world.
inline constexpr std::uint64_t kSeals = 0x5ea1;

/// For a host of a world with one shared secret. `epoch` identifies its life and seeds its handshakes.
link::SealSettings with_one_secret(std::uint64_t epoch);

/// Returns nullopt if the scenario does not seal. `seed` is for the other randomness of the host's handshakes.
std::optional<link::SealSettings> seals_of(const Scenario& scenario, std::uint32_t host, std::uint64_t seed);

}  // namespace fairlead::sim
