#include "seal/replay_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace fairlead::seal {
namespace {

constexpr std::uint64_t kTurn = std::uint64_t{1} << 32;

TEST(ReplayWindow, EachNumberIsTakenOnce) {
  ReplayWindow window;
  for (std::uint64_t number = 0; number < 20'000; ++number) {
    ASSERT_TRUE(window.is_new(number)) << number;
    window.mark(number);
    ASSERT_FALSE(window.is_new(number)) << number;
  }
}

TEST(ReplayWindow, ReorderingByTheLinksWholeWindowLosesNone) {
  for (const std::size_t distance : {64U, 4096U, 8000U}) {
    std::vector<std::uint64_t> numbers(60'000);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
    std::mt19937_64 random(distance);
    for (std::size_t i = 0; i + distance <= numbers.size(); i += distance)
      std::shuffle(numbers.begin() + i, numbers.begin() + i + distance, random);
    ReplayWindow window;
    for (const std::uint64_t number : numbers) {
      ASSERT_TRUE(window.is_new(number)) << number << " at a distance of " << distance;
      window.mark(number);
      ASSERT_FALSE(window.is_new(number));
    }
  }
}

TEST(ReplayWindow, WhatIsBehindItCountsAsCome) {
  ReplayWindow window;
  window.mark(100'000);
  EXPECT_TRUE(window.is_new(100'001 - ReplayWindow::kReach));
  EXPECT_FALSE(window.is_new(100'000 - ReplayWindow::kReach));
  EXPECT_FALSE(window.is_new(0));
}

TEST(ReplayWindow, AgreesWithASetOfAllThatCame) {
  std::mt19937_64 random(7);
  ReplayWindow window;
  std::set<std::uint64_t> come;
  std::uint64_t highest = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t ahead = random() % 100 == 0 ? random() % 30'000 : random() % 64;
    const std::uint64_t back = random() % (2 * ReplayWindow::kBits);
    const std::uint64_t number = highest + ahead > back ? highest + ahead - back : 0;
    const bool is_within = highest + 1 <= number + ReplayWindow::kReach;
    ASSERT_EQ(window.is_new(number), is_within && !come.contains(number)) << number << " below " << highest;
    if (!window.is_new(number)) continue;
    window.mark(number);
    come.insert(number);
    highest = std::max(highest, number);
  }
}

TEST(ReplayWindow, TheUpperHalfOfANumberFollowsFromTheHighest) {
  ReplayWindow window;
  EXPECT_EQ(window.complete(5), 5U);
  EXPECT_EQ(window.complete(0x7fff'ffff), 0x7fff'ffffU);
  window.mark(kTurn - 2);
  EXPECT_EQ(window.complete(0), kTurn);
  EXPECT_EQ(window.complete(0xffff'fff0), kTurn - 16);
  window.mark(5 * kTurn + 10);
  EXPECT_EQ(window.complete(0xffff'ffff), 5 * kTurn - 1);
  EXPECT_EQ(window.complete(11), 5 * kTurn + 11);
  EXPECT_EQ(window.complete(0x7000'0000), 5 * kTurn + 0x7000'0000);
}

}  // namespace
}  // namespace fairlead::seal
