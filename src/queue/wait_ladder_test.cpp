#include "queue/wait_ladder.hpp"

#include <gtest/gtest.h>

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
