#include "transport/guess_budget.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;

TEST(GuessBudget, IsUsedUpByWhoGoesOnAndComesBack) {
  GuessBudget budget;
  base::Instant now{1s};
  for (std::int64_t i = 0; i < GuessBudget::kMost; ++i) ASSERT_TRUE(budget.spend(1, now));
  EXPECT_FALSE(budget.spend(1, now));
  now += 1s;
  for (std::int64_t i = 0; i < GuessBudget::kPerSecond; ++i) ASSERT_TRUE(budget.spend(1, now)) << i;
  EXPECT_FALSE(budget.spend(1, now));
  now += 10h;
  for (std::int64_t i = 0; i < GuessBudget::kMost; ++i) ASSERT_TRUE(budget.spend(1, now));
  EXPECT_FALSE(budget.spend(1, now)) << "it never is more than it was";
}

TEST(GuessBudget, ComesBackInSmallSteps) {
  GuessBudget budget;
  base::Instant now{1s};
  EXPECT_TRUE(budget.spend(GuessBudget::kMost, now));
  std::int64_t spent = 0;
  for (int step = 0; step < 10'000; ++step) spent += budget.spend(1, now += 300us) ? 1 : 0;
  EXPECT_EQ(spent, 3 * GuessBudget::kPerSecond);
}

TEST(GuessBudget, FewGuessesCostAllOfItIfEachIsDear) {
  GuessBudget budget;
  const base::Instant now{1s};
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(budget.spend(GuessBudget::kMost / 64, now));
  EXPECT_FALSE(budget.spend(GuessBudget::kMost / 64, now));
}

// A guess that the budget does not cover takes all that is left, so cheaper guesses fail, too.
TEST(GuessBudget, WhoCannotPayHasNothingLeft) {
  GuessBudget budget;
  const base::Instant now{1s};
  ASSERT_TRUE(budget.spend(GuessBudget::kMost - 5, now));
  EXPECT_FALSE(budget.spend(10, now));
  EXPECT_FALSE(budget.spend(1, now));
}

TEST(GuessBudget, TimeThatStandsStillOrGoesBackGivesNothing) {
  GuessBudget budget;
  ASSERT_TRUE(budget.spend(GuessBudget::kMost, base::Instant(5s)));
  EXPECT_FALSE(budget.spend(1, base::Instant(5s)));
  EXPECT_FALSE(budget.spend(1, base::Instant(4s)));
}

}  // namespace
}  // namespace fairlead::transport
