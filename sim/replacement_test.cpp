// Engines replaced in the middle of a load (docs/host.md): nothing is lost or duplicated, and the simulator detects a
// wrong handover.

#include "sim/replacement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario_file.hpp"
#include "sim/swarm.hpp"
#include "sim/world.hpp"

namespace fairlead::sim {
namespace {

using testing::HasSubstr;

Report run_replacements(Sabotage::Kind sabotage, std::uint64_t seed, Seals seals = Seals::none) {
  Scenario scenario = read_scenario(FAIRLEAD_SOURCE_FOLDER "/sim/scenarios/engines_replaced.json").value();
  scenario.sabotage = sabotage;
  scenario.seals = seals;
  if (seals != Seals::none) {
    EXPECT_TRUE(scenario.options.set(engine::Option::seal_rekey_bytes, 64 << 10));
  }
  return World(scenario, seed).run();
}

/// Returns the first finding over some seeds.
std::string finding_of_replacements_with(Sabotage::Kind sabotage, Seals seals = Seals::none) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    if (const auto finding = run_replacements(sabotage, seed, seals).finding) return *finding;
  return "nothing";
}

TEST(ReplacementTest, NobodyNoticesIt) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Report report = run_replacements(Sabotage::Kind::none, seed);
    EXPECT_FALSE(report.finding) << *report.finding << " (seed " << seed << ")";
    EXPECT_EQ(report.replacements, 8u) << "seed " << seed;
    EXPECT_EQ(report.ends.count(Status::restarted), 0u);
  }
}

TEST(ReplacementTest, NobodyNoticesItInSealedSessions) {
  for (const Seals seals : {Seals::shared_secret, Seals::static_keys}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Report report = run_replacements(Sabotage::Kind::none, seed, seals);
      EXPECT_FALSE(report.finding) << *report.finding << " (seed " << seed << ")";
      EXPECT_GT(report.replacements, 4u) << "seed " << seed;
    }
  }
}

TEST(ReplacementTest, HappensInDrawnWorldsToo) {
  constexpr std::uint64_t kSeedsMost = 200, kWanted = 5;
  std::uint64_t replacements = 0;
  for (std::uint64_t seed = 1; seed <= kSeedsMost && replacements < kWanted; ++seed)
    replacements += World(draw_scenario(seed), seed).run().replacements;
  EXPECT_GE(replacements, kWanted);
}

TEST(ReplacementTest, ASegmentThatIsTakenForReceived) {
  EXPECT_NE(finding_of_replacements_with(Sabotage::Kind::skipped_sequence), "nothing");
}

TEST(ReplacementTest, ASegmentThatIsForgotten) {
  EXPECT_NE(finding_of_replacements_with(Sabotage::Kind::forgotten_arrival), "nothing");
}

TEST(ReplacementTest, AnAnswerInFlightThatIsForgotten) {
  Scenario scenario = read_scenario(FAIRLEAD_SOURCE_FOLDER "/sim/scenarios/answering_engine_replaced.json").value();
  const Report report = World(scenario, 1).run();
  EXPECT_FALSE(report.finding) << *report.finding;
  EXPECT_EQ(report.replacements, 7u);
  scenario.sabotage = Sabotage::Kind::forgotten_segment;
  bool is_found = false;
  for (std::uint64_t seed = 1; seed <= 10 && !is_found; ++seed)
    is_found = World(scenario, seed).run().finding.has_value();
  EXPECT_TRUE(is_found);
}

TEST(ReplacementTest, KeysThatAreForgotten) {
  EXPECT_NE(finding_of_replacements_with(Sabotage::Kind::forgotten_keys, Seals::shared_secret), "nothing");
}

TEST(ReplacementTest, AnAnswerThatIsForgotten) {
  EXPECT_NE(finding_of_replacements_with(Sabotage::Kind::forgotten_answer), "nothing");
}

}  // namespace
}  // namespace fairlead::sim
