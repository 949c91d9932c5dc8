#include "queue/idle_polls.hpp"

#include <gtest/gtest.h>

namespace fairlead::queue {
namespace {

using namespace std::chrono_literals;
using Step = IdlePolls::Step;

class Polls : public testing::Test {
 protected:
  /// Polls in vain for this long, every `gap`; yields take `yield`, sleeps their whole time.
  void poll_for(base::Duration length, base::Duration gap, base::Duration yield) {
    yields_ = sleeps_ = 0;
    for (const base::Instant end = now_ + length; now_ < end; now_ += gap, ++polls_made_) {
      if (!polls_.is_turn([this] { return now_; })) continue;
      const Step step = polls_.next(now_);
      const base::Instant before = now_;
      if (step == Step::yield) now_ += yield, polls_.yielded(before, now_), ++yields_;
      if (step == Step::sleep) now_ += IdlePolls::kSleepMost, ++sleeps_;
    }
  }

  IdlePolls polls_;
  base::Instant now_{1s};
  int polls_made_ = 0, yields_ = 0, sleeps_ = 0;
};

TEST_F(Polls, GoOnWhileNobodyWantsTheProcessor) {
  poll_for(10ms, 100ns, 400ns);
  EXPECT_EQ(sleeps_, 0);
  EXPECT_LT(yields_, 10ms / 16us + 10);
}

TEST_F(Polls, YieldEachTimeToOthersThatPoll) {
  poll_for(10ms, 100ns, 20us);
  EXPECT_EQ(sleeps_, 0);
  EXPECT_GT(yields_, 300);
}

TEST_F(Polls, SleepBesideWhoComputesAndTryAgainNowAndThen) {
  poll_for(100ms, 100ns, 3ms);
  EXPECT_GT(sleeps_, 60);
  EXPECT_GE(yields_, 3);
  EXPECT_LE(yields_, 6);
}

TEST_F(Polls, ThatComputeBetweenAreLeftAlone) {
  poll_for(20ms, 100ns, 3ms);
  ASSERT_GT(sleeps_, 0);
  poll_for(10ms, 5us, 3ms);
  EXPECT_EQ(sleeps_ + yields_, 0);
}

// Whoever is polled for may need this processor: a long row of polls would delay the answer.
TEST_F(Polls, AreFewBesideWhoComputes) {
  poll_for(100ms, 100ns, 3ms);
  const int polls_before = polls_made_;
  poll_for(10ms, 100ns, 3ms);
  EXPECT_GE(sleeps_, 6);
  EXPECT_LE(polls_made_ - polls_before, 2 * static_cast<int>(IdlePolls::kInRow));
}

// The time between two rows is no work of the thread: it slept, or handled messages.
TEST_F(Polls, AreTimedAlone) {
  poll_for(10ms, 100ns, 3ms);
  ASSERT_GT(sleeps_, 0);
  for (int message = 0; message < 5; ++message) {
    polls_.found();
    now_ += 250us;
    poll_for(500ns, 100ns, 3ms);
    EXPECT_EQ(sleeps_, 1) << message;
  }
}

TEST_F(Polls, ThatFindSomethingAreNoIdleOnes) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(polls_.is_turn([this] { return now_; }));
    if (i % 50 == 0) polls_.found();
  }
}

}  // namespace
}  // namespace fairlead::queue
