// Worlds generated from seeds: a fixed set for each run, and fresh ones. A fault that a seed finds gets a test of its
// own next to the faulty code.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "base/slowness_for_tests.hpp"
#include "sim/fresh_seed_for_tests.hpp"
#include "sim/scenario_file.hpp"
#include "sim/swarm.hpp"
#include "sim/world.hpp"
#include "tests/environment.hpp"

namespace fairlead::sim {
namespace {

using base::kSlowness;

const std::uint64_t kFixedSeeds = (tests::is_full_run() ? 80 : 24) / kSlowness;
const std::uint64_t kFreshSeeds = (tests::is_full_run() ? 80 : 40) / kSlowness;

void run_seed(std::uint64_t seed) {
  const Report report = World(draw_scenario(seed), seed).run();
  if (report.finding) ADD_FAILURE() << *report.finding << "\n  replay: ./dev sim --seed " << seed;
}

TEST(SeedsTest, TheFixedOnes) {
  for (std::uint64_t seed = 1; seed <= kFixedSeeds && !HasFailure(); ++seed) run_seed(seed);
}

TEST(SeedsTest, FreshOnes) {
  const std::uint64_t first = first_fresh_seed(kFreshSeeds);
  for (std::uint64_t seed = first; seed < first + kFreshSeeds && !HasFailure(); ++seed) run_seed(seed);
}

TEST(SeedsTest, OneSeedOneTrace) {
  for (std::uint64_t seed = 1; seed <= (tests::is_full_run() ? 24 : 4) / kSlowness; ++seed) {
    const Report once = World(draw_scenario(seed), seed).run();
    const Report again = World(draw_scenario(seed), seed).run();
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(once.events, again.events) << "seed " << seed;
    const Report other = World(draw_scenario(seed), seed + 1'000'000).run();
    EXPECT_NE(once.hash, other.hash) << "seed " << seed;
  }
}

/// Returns the names of all rare branches in the sources.
std::set<std::string> rare_places() {
  std::set<std::string> places;
  const std::regex call("base::rare\\(\"([^\"]+)\"\\)");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FAIRLEAD_SOURCE_FOLDER "/src")) {
    const std::string file = entry.path();
    if (!file.ends_with(".cpp") || file.ends_with("_test.cpp")) continue;
    std::ifstream stream(file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    for (std::sregex_iterator found(text.begin(), text.end(), call), end; found != end; ++found)
      places.insert((*found)[1]);
  }
  return places;
}

TEST(SeedsTest, EachRareBranchIsTaken) {
  std::set<std::string> left = rare_places();
  EXPECT_GE(left.size(), 15u);
  const auto look = [&](const Report& report) {
    for (const auto& [place, count] : report.rare) {
      if (count.taken > 0) left.erase(std::string(place));
    }
  };
  // Grants need many senders at once.
  Scenario crowd = read_scenario(FAIRLEAD_SOURCE_FOLDER "/sim/scenarios/crowd_and_small_buffer.json").value();
  crowd.has_rare_branches = true;
  crowd.time = std::chrono::milliseconds(30);
  for (std::uint64_t seed = 1; seed <= 60 && !left.empty(); ++seed) {
    look(World(draw_scenario(seed), seed).run());
    if (seed <= 40) look(World(crowd, seed).run());
  }
  EXPECT_TRUE(left.empty()) << fmt::format("never: {}", fmt::join(left, ", "));
}

}  // namespace
}  // namespace fairlead::sim
