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

  /// Polls in vain, every `gap`, until it is the turn of a step; returns the number of polls.
  std::uint32_t polls_until_turn(base::Duration gap = 1us, bool finds_between = false) {
    std::uint32_t polls = 1;
    while (now_ += gap, !polls_.is_turn([this] { return now_; })) {
      if (finds_between) polls_.found();
      if (++polls > 100'000) break;
    }
    return polls;
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
  poll_for(10ms, 20us, 3ms);
  EXPECT_EQ(sleeps_ + yields_, 0);
}

// Polls of a network take long: many of them would keep the processor from the threads that are polled for.
TEST_F(Polls, AreFewBetweenYieldsToOthersThatPoll) {
  poll_for(1ms, 500ns, 10us);
  EXPECT_GT(yields_, 1ms / (10us + 500ns * static_cast<int>(IdlePolls::kInRowBesideOthers)) * 8 / 10);
  poll_for(1ms, 500ns, 400ns);
  poll_for(10ms, 500ns, 400ns);
  EXPECT_LE(yields_, 10ms / (500ns * static_cast<int>(IdlePolls::kInRow)) + 1);
}

TEST_F(Polls, AreFewIfTheLastYieldLetAnotherThreadRun) {
  EXPECT_EQ(polls_until_turn(), 64);
  const auto yielded = [this](base::Duration took) {
    EXPECT_EQ(polls_.next(now_), Step::yield);
    polls_.yielded(now_, now_ + took);
    now_ += 1ms;
  };
  yielded(WaitLadder::kUseful - 1ns);
  EXPECT_EQ(polls_until_turn(), 64);
  yielded(WaitLadder::kUseful);
  EXPECT_EQ(polls_until_turn(), 4);
  yielded(WaitLadder::yield_most());
  EXPECT_EQ(polls_until_turn(), 4);
  yielded(WaitLadder::yield_most() + 1ns);
  EXPECT_EQ(polls_until_turn(), 64);
}

TEST_F(Polls, CountAlthoughSomethingIsFoundBetween) {
  EXPECT_EQ(polls_until_turn(1us, true), 1024);
  EXPECT_EQ(polls_.next(now_), Step::yield);
  polls_.yielded(now_, now_ + 20us);
  EXPECT_EQ(polls_until_turn(1us, true), 4);
}

TEST_F(Polls, MoreThanTenMicrosecondsApartAreWorkBetween) {
  polls_until_turn(10us);
  EXPECT_EQ(polls_.next(now_), Step::yield);
  polls_until_turn(10us + 1ns);
  EXPECT_EQ(polls_.next(now_), Step::look);
}

TEST_F(Polls, ThatMustNotSleepGoOnBesideWhoComputes) {
  IdlePolls spins(WaitChoice::spin);
  const auto step = [&] {
    for (int i = 0; i < 1000 && !spins.is_turn([this] { return now_; }); ++i) now_ += 1us;
    return spins.next(now_);
  };
  EXPECT_EQ(step(), Step::yield);
  spins.yielded(now_, now_ + 1s);
  now_ += 1s;
  EXPECT_EQ(step(), Step::look);
}

// A thread that asks for a lock again and again finds an answer each time; the holder of the lock needs the processor.
TEST_F(Polls, ThatFindSomethingAtTimesAlsoYield) {
  const auto ask = [&](base::Duration yield) {
    int yields = 0, sleeps = 0;
    for (int message = 0; message < 1000; ++message, yields += yields_, sleeps += sleeps_) {
      polls_.found();
      poll_for(8us, 500ns, yield);
    }
    EXPECT_EQ(sleeps, 0) << "messages come";
    return yields;
  };
  EXPECT_GT(ask(20us), 900);
  EXPECT_LE(ask(400ns), 16) << "nobody wants the processor";
  EXPECT_LE(ask(3ms), 2) << "others compute";
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
  for (int i = 0; i < static_cast<int>(IdlePolls::kInAll) - 1; ++i) {
    EXPECT_FALSE(polls_.is_turn([this] { return now_; }));
    if (i % 50 == 0) polls_.found();
  }
}

}  // namespace
}  // namespace fairlead::queue
