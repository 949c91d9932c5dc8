#include "base/rare.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fairlead::base {
namespace {

constexpr int kTimes = 10'000;

std::uint64_t taken_of(std::uint64_t seed, std::string_view place) {
  RareBranches branches(seed);
  for (int i = 0; i < kTimes; ++i) branches.take(place);
  return branches.counts().at(place).taken;
}

TEST(RareTest, IsNeverTakenOutsideTheSimulator) {
  for (int i = 0; i < kTimes; ++i) EXPECT_FALSE(rare("nowhere"));
}

TEST(RareTest, APlaceIsOnInSomeRunsAndThenRare) {
  int runs_on = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::uint64_t taken = taken_of(seed, "here");
    if (taken == 0) continue;
    ++runs_on;
    EXPECT_GT(taken, kTimes / 32u);
    EXPECT_LT(taken, kTimes / 8u);
  }
  EXPECT_GT(runs_on, 60);
  EXPECT_LT(runs_on, 140);
}

TEST(RareTest, PlacesOfOneRunAreSwitchedIndependently) {
  int same = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    same += (taken_of(seed, "here") == 0) == (taken_of(seed, "there") == 0);
  EXPECT_GT(same, 100);
  EXPECT_LT(same, 230);
}

TEST(RareTest, OneSeedOneSeries) {
  std::vector<bool> first, second;
  for (auto* series : {&first, &second}) {
    RareBranches branches(7);
    for (int i = 0; i < 1000; ++i) series->push_back(branches.take(i % 2 == 0 ? "here" : "there"));
  }
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace fairlead::base
