#include "queue/wait_ladder.hpp"

#include <gtest/gtest.h>
#include <time.h>

namespace fairlead::queue {
namespace {

using namespace std::chrono_literals;
using Step = WaitLadder::Step;

class Ladder : public testing::Test {
 protected:
  /// A wait that polls every 100 ns until it sleeps or `length` is over; yields take `yield`. Returns how long it
  /// polled.
  base::Duration wait(WaitLadder& ladder, base::Duration length, base::Duration yield) {
    WaitLadder::Wait one = ladder.begin(now_);
    const base::Instant began = now_, end = now_ + length;
    base::Duration looked = kNeverSlept;
    yields_ = 0;
    while (now_ < end) {
      const Step step = ladder.next(one, now_);
      if (step == Step::sleep) {
        looked = now_ - began;
        now_ = end;
        ladder.slept(one, now_);
        break;
      }
      const base::Instant before = now_;
      now_ += step == Step::yield ? yield : 100ns;
      if (step == Step::yield) ladder.yielded(one, before, now_), ++yields_;
    }
    ladder.end(one, now_);
    now_ += 1us;
    return looked;
  }

  static constexpr base::Duration kNeverSlept = base::Duration::max();
  base::Instant now_{1s};
  int yields_ = 0;
};

TEST_F(Ladder, LooksForItsBudgetAndLessAfterWaitsThatTookLong) {
  WaitLadder ladder(WaitChoice::adaptive, 50us);
  const auto first = wait(ladder, 10ms, 400ns);
  EXPECT_GE(first, 50us);
  EXPECT_LE(first, 51us);
  EXPECT_LE(wait(ladder, 10ms, 400ns), 26us);
  for (int i = 0; i < 10; ++i) wait(ladder, 10ms, 400ns);
  EXPECT_LE(wait(ladder, 10ms, 400ns), 2us);
  EXPECT_LE(wait(ladder, 40us, 400ns), 2us);          // slept, but not for long:
  EXPECT_EQ(wait(ladder, 40us, 400ns), kNeverSlept);  // the next one polls until the end
}

TEST_F(Ladder, YieldsThatHelpNobodyBecomeRare) {
  WaitLadder ladder(WaitChoice::adaptive, 1000us);
  wait(ladder, 1000us, 400ns);
  const int few = yields_;
  EXPECT_LT(few, 80);
  wait(ladder, 300us, 5us);  // another thread runs meanwhile
  EXPECT_GT(yields_, 40);
}

// On a crowded processor one yield takes longer than the budget. Whoever slept then would have to be woken each time.
TEST_F(Ladder, TheTimeOfOthersIsNotItsOwn) {
  WaitLadder ladder(WaitChoice::adaptive, 50us);
  EXPECT_EQ(wait(ladder, 1ms, 120us), kNeverSlept);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(wait(ladder, 400us, 20us), kNeverSlept) << "long waits beside others leave the budget";
  }
  const auto looked = wait(ladder, 10ms, 20us);  // a switch is its own
  EXPECT_GE(looked, 400us);
  EXPECT_LE(looked, 600us);
}

// Waits that last because of what arrives meanwhile have polled for long, if they switched often.
TEST_F(Ladder, TheSwitchesAreItsOwn) {
  WaitLadder ladder(WaitChoice::adaptive, 50us);
  auto one = ladder.begin(now_);
  for (int i = 0; i < 60; ++i) {
    ladder.yielded(one, now_, now_ + 20us);
    now_ += 20us;
    ladder.stirred(one, now_);
  }
  ladder.end(one, now_);
  const auto next = ladder.begin(now_);
  EXPECT_EQ(next.spin_until - now_, 25us);
}

TEST_F(Ladder, AYieldThatLetAnotherThreadRunIsFollowedByTheNext) {
  WaitLadder ladder(WaitChoice::adaptive, 50us);
  auto one = ladder.begin(now_);
  ladder.yielded(one, now_, now_ + WaitLadder::kUseful);
  EXPECT_EQ(ladder.next(one, now_ + WaitLadder::kUseful), Step::yield);
  ladder.yielded(one, now_, now_ + WaitLadder::kUseful - 1ns);
  EXPECT_EQ(ladder.next(one, now_ + WaitLadder::kUseful), Step::look);
}

TEST_F(Ladder, AYieldIsExpensiveFromAQuarterOfTheTickOn) {
  static_assert(WaitLadder::yield_most(10ms) == 2500us);
  static_assert(WaitLadder::yield_most(4ms) == 1ms);
  static_assert(WaitLadder::yield_most(1ms) == 300us);
  timespec tick{};
  ASSERT_EQ(::clock_getres(CLOCK_MONOTONIC_COARSE, &tick), 0);
  const base::Duration most = WaitLadder::yield_most();
  EXPECT_EQ(most, WaitLadder::yield_most(std::chrono::nanoseconds(tick.tv_nsec)));

  WaitLadder ladder(WaitChoice::adaptive, 50us);
  const auto budget_after = [&](base::Duration took) {
    auto one = ladder.begin(now_);
    ladder.yielded(one, now_, now_ + took);
    return ladder.begin(now_ + took).spin_until - (now_ + took);
  };
  EXPECT_EQ(budget_after(most), 50us);
  EXPECT_EQ(budget_after(most + 1ns), 0us);
}

TEST_F(Ladder, BesideAForeignProgramItSleepsAtOnceForAWhile) {
  WaitLadder ladder(WaitChoice::adaptive, 50us);
  wait(ladder, 10ms, 3ms);
  EXPECT_EQ(yields_, 1);
  EXPECT_LE(wait(ladder, 1ms, 3ms), 1us);
  EXPECT_EQ(yields_, 0);
  now_ += WaitLadder::kRest;
  wait(ladder, 1ms, 3ms);
  EXPECT_EQ(yields_, 1);
}

TEST_F(Ladder, LooksOnWhileSomethingHappens) {
  WaitLadder ladder(WaitChoice::adaptive, 50us);
  auto one = ladder.begin(now_);
  now_ += 10ms;
  ladder.slept(one, now_);
  EXPECT_EQ(ladder.next(one, now_), Step::sleep);
  ladder.stirred(one, now_);
  EXPECT_NE(ladder.next(one, now_ + 49us), Step::sleep);
  EXPECT_EQ(ladder.next(one, now_ + 51us), Step::sleep);
}

TEST_F(Ladder, TheTwoThatDoNotAdapt) {
  WaitLadder spins(WaitChoice::spin, 50us), sleeps(WaitChoice::sleep, 50us);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(wait(spins, 5ms, 400us), kNeverSlept);
    EXPECT_EQ(wait(sleeps, 5ms, 400ns), 0us);
  }
}

}  // namespace
}  // namespace fairlead::queue
