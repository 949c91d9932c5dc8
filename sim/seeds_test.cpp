// Worlds drawn from seeds: a fixed set that each run repeats, and fresh ones that no run had before. A fault that a
// seed found gets a test of its own beside the code that had it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/swarm.hpp"
#include "sim/world.hpp"

namespace fairlead::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSlowness = 8;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t kSlowness = 8;
#else
constexpr std::uint64_t kSlowness = 1;
#endif
#else
constexpr std::uint64_t kSlowness = 1;
#endif

constexpr std::uint64_t kFixedSeeds = 200 / kSlowness;
constexpr std::uint64_t kFreshSeeds = 200 / kSlowness;

void run_seed(std::uint64_t seed) {
  const Report report = World(draw_scenario(seed), seed).run();
  if (report.finding) ADD_FAILURE() << *report.finding << "\n  replay: ./dev sim --seed " << seed;
}

/// Of FAIRLEAD_SIM_SEED, or of the clock.
std::uint64_t first_fresh_seed() {
  if (const char* wish = std::getenv("FAIRLEAD_SIM_SEED")) return std::strtoull(wish, nullptr, 10);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) * 1000;
}

TEST(SeedsTest, TheFixedOnes) {
  for (std::uint64_t seed = 1; seed <= kFixedSeeds && !HasFailure(); ++seed) run_seed(seed);
}

TEST(SeedsTest, FreshOnes) {
  const std::uint64_t first = first_fresh_seed();
  fmt::print("seeds {} to {}; again: FAIRLEAD_SIM_SEED={}\n", first, first + kFreshSeeds - 1, first);
  for (std::uint64_t seed = first; seed < first + kFreshSeeds && !HasFailure(); ++seed) run_seed(seed);
}

TEST(SeedsTest, OneSeedOneTrace) {
  for (std::uint64_t seed = 1; seed <= 24 / kSlowness; ++seed) {
    const Report once = World(draw_scenario(seed), seed).run();
    const Report again = World(draw_scenario(seed), seed).run();
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(once.events, again.events) << "seed " << seed;
    const Report other = World(draw_scenario(seed), seed + 1'000'000).run();
    EXPECT_NE(once.hash, other.hash) << "seed " << seed;
  }
}

TEST(SeedsTest, EachRareBranchIsTaken) {
  constexpr std::uint64_t kMetOften =
      1000;  // grants are rare in small worlds: incast_64 and the link's tests have them
  std::map<std::string_view, base::RareBranches::Count> counts;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    for (const auto& [place, count] : World(draw_scenario(seed), seed).run().rare) {
      counts[place].met += count.met;
      counts[place].taken += count.taken;
    }
  }
  EXPECT_GE(counts.size(), 14u);
  for (const auto& [place, count] : counts) EXPECT_TRUE(count.taken > 0 || count.met < kMetOften) << place;
}

}  // namespace
}  // namespace fairlead::sim
