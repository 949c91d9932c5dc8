// The real src/net, with machines, buffers and deadlines, in worlds generated from seeds.

#include "sim/net_swarm.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/fresh_seed_for_tests.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kFixedSwarms = 60, kFreshSwarms = 60;

NetReport run(std::uint64_t seed) {
  NetReport report = run_net_swarm(seed);
  if (report.finding)
    ADD_FAILURE() << *report.finding << "\n  replay: FAIRLEAD_TEST_SIM_SEED=" << seed
                  << " build/bin/sim_test --gtest_filter=*Fresh*";
  return report;
}

TEST(NetSwarm, TheFixedSeeds) {
  std::uint64_t operations = 0, succeeded = 0, restarts = 0, through_memory = 0;
  StatementCounts statements{};
  for (std::uint64_t seed = 1; seed <= kFixedSwarms && !HasFailure(); ++seed) {
    const NetReport report = run(seed);
    operations += report.operations;
    succeeded += report.succeeded;
    restarts += report.restarts;
    through_memory += report.through_memory;
    for (std::size_t i = 0; i < statements.size(); ++i) statements[i] += report.statements[i];
  }
  // Checks that the test really tests something.
  EXPECT_GT(operations, 20'000u);
  EXPECT_GT(succeeded, operations / 4);
  EXPECT_GT(restarts, 10u);
  EXPECT_GT(through_memory, 1000u);
  // 12 is checked inside the engine; 13 and 14 are about the host engine.
  for (const std::size_t statement : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17})
    EXPECT_GT(statements.at(statement), 100u) << "checks of statement " << statement;
}

TEST(NetSwarm, FreshSeeds) {
  const std::uint64_t first = first_fresh_seed(kFreshSwarms);
  for (std::uint64_t seed = first; seed < first + kFreshSwarms && !HasFailure(); ++seed) run(seed);
}

TEST(NetSwarm, OneSeedOneRun) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) EXPECT_EQ(run(seed).hash, run(seed).hash) << seed;
}

}  // namespace
}  // namespace fairlead::sim
