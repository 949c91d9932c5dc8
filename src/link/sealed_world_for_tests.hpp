#pragma once
// What tests of sealed sessions ask of a world, and its two kinds of keys as a parameter.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "link/sealing_for_tests.hpp"

namespace fairlead::link::testing {

inline const LinkCounters& counted(const World& world, std::size_t end) {
  return world.ends[end].link->counters();
}
inline std::uint64_t refused(const World& world, std::size_t end, Refusal refusal) {
  return counted(world, end).refused[static_cast<std::size_t>(refusal)];
}
inline PeerFacts facts_of(World& world, std::size_t end) {
  return world.ends[end].link->facts(world.peer(end, 1 - end));
}
inline const Notice* lost_notice(const World& world, std::size_t end) {
  const auto& notices = world.ends[end].notices;
  const auto found = std::ranges::find(notices, Notice::Kind::lost, &Notice::kind);
  return found == notices.end() ? nullptr : &*found;
}

/// A world of two ends with rings of their own.
inline World world_of(std::uint64_t seed, std::shared_ptr<const seal::Keyring> one,
                      std::shared_ptr<const seal::Keyring> two) {
  return World(seed, {}, 2, [=](std::size_t end) { return sealing_with(end == 0 ? one : two, seed + end); });
}

/// With a shared secret, or with static keys.
class LinkSeal : public ::testing::TestWithParam<bool> {
 protected:
  static World::Sealing sealing(std::uint64_t seed) {
    return GetParam() ? all_with_static_keys(seed) : all_with_psk(seed);
  }
};

}  // namespace fairlead::link::testing
