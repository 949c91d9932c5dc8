// Processes that lie to their peers on one machine.

#include "sim/liar.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/fresh_seed_for_tests.hpp"
#include "sim/scenario_file.hpp"
#include "sim/swarm.hpp"
#include "sim/world.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kLiarSeeds = 12;

/// Draws the next world that has a liar, from this seed on.
Scenario draw_with_liar(std::uint64_t& seed) {
  for (;; ++seed) {
    Scenario scenario = draw_scenario(seed);
    const auto is_lie = [](const FaultPlan& fault) { return fault.kind == FaultPlan::Kind::lie; };
    if (std::ranges::any_of(scenario.faults, is_lie)) return scenario;
  }
}

struct Lies {
  std::uint64_t told = 0, expelled = 0;
};

Lies run_worlds_with_liars(std::uint64_t seed) {
  Lies all;
  for (std::uint64_t run = 0; run < kLiarSeeds && !testing::Test::HasFailure(); ++run, ++seed) {
    const Scenario scenario = draw_with_liar(seed);
    const Report report = World(scenario, seed).run();
    if (report.finding) ADD_FAILURE() << *report.finding << "\n  replay: ./dev sim --seed " << seed;
    all.told += report.lies;
    all.expelled += report.liars_expelled;
  }
  return all;
}

TEST(LiarTest, HonestPeersAreNotHarmed) {
  const Lies lies = run_worlds_with_liars(1);
  // Checks that the test really tests something.
  EXPECT_GT(lies.told, 50u);
  EXPECT_GT(lies.expelled, 0u);
}

TEST(LiarTest, HonestPeersAreNotHarmedInFreshWorlds) {
  run_worlds_with_liars(first_fresh_seed(kLiarSeeds));
}

TEST(LiarTest, OneSeedOneRun) {
  const auto scenario = read_scenario(FAIRLEAD_SOURCE_FOLDER "/sim/scenarios/lying_process.json");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const Report once = World(*scenario, 3).run(), again = World(*scenario, 3).run();
  EXPECT_EQ(once.hash, again.hash);
  EXPECT_EQ(once.lies, again.lies);
  EXPECT_GT(once.lies, 10u);
  EXPECT_GT(once.liars_expelled, 0u);
}

}  // namespace
}  // namespace fairlead::sim
