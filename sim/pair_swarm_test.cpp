// Queue pairs and active messages over whole engines, in worlds generated from seeds.

#include "sim/pair_swarm.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fresh_seed_for_tests.hpp"

namespace fairlead::sim {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kFixedPairSeeds = 60, kFreshPairSeeds = 20;

PairReport run_pairs(std::uint64_t seed) {
  PairReport report = run_pair_swarm(seed);
  if (report.finding) ADD_FAILURE() << *report.finding << "\n  replay: ./dev sim --swarm pairs --seed " << seed;
  return report;
}

TEST(PairSwarm, TheFixedSeeds) {
  PairReport all;
  for (std::uint64_t seed = 1; seed <= kFixedPairSeeds && !HasFailure(); ++seed) {
    const PairReport report = run_pairs(seed);
    all.succeeded += report.succeeded;
    all.failed += report.failed;
    all.openings += report.openings;
    all.kills += report.kills;
    all.active_answered += report.active_answered;
    all.through_memory += report.through_memory;
    all.replacements += report.replacements;
    all.lies += report.lies;
    all.liars_expelled += report.liars_expelled;
  }
  // Checks that the test really tests something.
  EXPECT_GT(all.succeeded, 1500u);
  EXPECT_GT(all.failed, 10u);
  EXPECT_GT(all.openings, 50u);
  EXPECT_GT(all.kills, 5u);
  EXPECT_GT(all.active_answered, 500u);
  EXPECT_GT(all.through_memory, 500u);
  EXPECT_GT(all.replacements, 50u);
  EXPECT_GT(all.lies, 100u);
  EXPECT_GT(all.liars_expelled, 0u);
}

TEST(PairSwarm, FreshSeeds) {
  const std::uint64_t first = first_fresh_seed(kFreshPairSeeds);
  for (std::uint64_t seed = first; seed < first + kFreshPairSeeds && !HasFailure(); ++seed) run_pairs(seed);
}

TEST(PairSwarm, OneSeedOneRun) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) EXPECT_EQ(run_pairs(seed).hash, run_pairs(seed).hash) << seed;
}

/// Returns the first finding over some seeds.
std::string finding_of_pairs_with(Sabotage::Kind sabotage, std::uint64_t first = 1) {
  for (std::uint64_t seed = first; seed < first + 30; ++seed)
    if (const auto finding = run_pair_swarm(seed, sabotage).finding) return *finding;
  return "nothing";
}

TEST(PairSwarm, ARequestThatAReplacedEngineSkips) {
  EXPECT_NE(finding_of_pairs_with(Sabotage::Kind::skipped_request), "nothing");
}

TEST(PairSwarm, ARequestThatAReplacedEngineForgets) {
  EXPECT_NE(finding_of_pairs_with(Sabotage::Kind::forgotten_request), "nothing");
}

TEST(PairSwarm, AReceiveThatAReplacedEngineForgets) {
  EXPECT_NE(finding_of_pairs_with(Sabotage::Kind::forgotten_receive), "nothing");
}

TEST(PairSwarm, ALiarWhomNobodyExpels) {
  std::string finding = "nothing";
  std::uint64_t seed = 1;
  for (int worlds = 0; worlds < 30 && finding == "nothing"; ++seed) {
    if (!has_pair_liar(seed)) continue;
    ++worlds;
    finding = run_pair_swarm(seed, Sabotage::Kind::forgiven_liar).finding.value_or("nothing");
  }
  EXPECT_THAT(finding, HasSubstr("has not expelled host")) << "seed " << seed;
}

}  // namespace
}  // namespace fairlead::sim
