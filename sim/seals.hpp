#pragma once
// What the hosts of a world seal with: keys that their numbers tell, each known to all others; and an encryption that
// forgets the header, for Sabotage.

#include <cstdint>
#include <optional>

#include "link/seal_settings.hpp"
#include "sim/scenario.hpp"

namespace fairlead::sim {

/// With a seed it draws whether that one's world is sealed: the rest of the world stays what it was.
inline constexpr std::uint64_t kSeals = 0x5ea1;

/// Of a host of a world where all have one secret. `epoch`: its life, of which its handshakes are drawn.
link::SealSettings with_one_secret(std::uint64_t epoch);

/// Nothing, if the scenario does not seal. `seed`: of what else is random in the host's handshakes.
std::optional<link::SealSettings> seals_of(const Scenario& scenario, std::uint32_t host, std::uint64_t seed);

}  // namespace fairlead::sim
