#include "link/path_mtu.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace fairlead::link {
namespace {

using namespace std::chrono_literals;

/// Answers probes like a path that carries this many bytes; -1: there is no peer.
struct Path {
  PathMtu mtu = {};
  std::int64_t carries = 0;
  base::Instant now{1s};
  int probes = 0;

  base::Instant next(bool is_in_use) const {
    if (mtu.due() != base::kNever || !is_in_use) return mtu.due();
    base::Instant at = now;
    while (at < now + 1h && !mtu.is_search_due(at)) at += 100ms;
    return mtu.is_search_due(at) ? at : base::kNever;
  }

  void run(base::Duration span, bool is_in_use = true) {
    const base::Instant end = now + span;
    for (int steps = 0; steps < 100'000 && next(is_in_use) <= end; ++steps) {
      now = std::max(now, next(is_in_use));
      pass();
    }
    now = end;
  }
  /// One call of the timer, and the answers to its probes.
  void pass() {
    now = std::max(now, std::min(next(true), now + 1h));
    mtu.on_timer(2ms, now);
    while (const std::uint32_t length = mtu.wanted()) {
      const wire::Sequence number = mtu.number();
      mtu.on_sent();
      ++probes;
      if (length <= carries) mtu.on_answer(number, now);
    }
  }
};

TEST(PathMtu, AnHonestPathIsTestedOnceAndLeftAlone) {
  Path path{.carries = 8972};
  path.mtu.open(8972, path.now);
  EXPECT_EQ(path.mtu.size(), 8972U) << "believed until disproven: the first messages are not cut small";
  path.run(1h);
  EXPECT_EQ(path.mtu.size(), 8972U);
  EXPECT_EQ(path.probes, 1) << "the small one is not needed any more";
  EXPECT_EQ(path.next(true), base::kNever);
}

TEST(PathMtu, FindsEachUsualSizeBehindABlackHole) {
  for (const std::uint32_t carries : {1200U, 1232U, 1372U, 1412U, 1452U, 1472U, 4052U, 8952U}) {
    Path path{.carries = carries};
    path.mtu.open(65'000, path.now);
    path.run(1s);
    EXPECT_EQ(path.mtu.size(), carries);
    EXPECT_FALSE(path.mtu.is_below_least());
  }
}

TEST(PathMtu, IsNotDisprovenByAPartition) {
  Path path{.carries = -1};
  path.mtu.open(8972, path.now);
  path.run(1min, false);
  EXPECT_EQ(path.mtu.size(), 8972U);
  EXPECT_LE(path.probes, 16) << "and does not ask for ever";
}

// Regression: before its first round a test took the answer to an earlier one's probe for its own.
TEST(PathMtu, ALateAnswerToAnEarlierTestProvesNothing) {
  PathMtu mtu;
  base::Instant now{1s};
  mtu.open(1472, now);
  wire::Sequence earlier[2];
  for (wire::Sequence& number : earlier) {
    mtu.on_timer(2ms, now);
    number = mtu.number();
    now += 1s;
  }
  mtu.on_answer(earlier[0], now);
  ASSERT_FALSE(mtu.is_testing());
  mtu.set_goal(8972, now);
  ASSERT_TRUE(mtu.is_testing());
  mtu.on_answer(earlier[1], now);
  EXPECT_EQ(mtu.size(), 1472U);
  mtu.on_timer(2ms, now);
  mtu.on_answer(earlier[1], now);
  EXPECT_EQ(mtu.size(), 1472U);
  mtu.on_answer(mtu.number(), now);
  EXPECT_EQ(mtu.size(), 8972U);
}

TEST(PathMtu, IsNotDisprovenByOneLostProbe) {
  Path path{.carries = 1472};
  path.mtu.open(8972, path.now);
  path.run(1ms);
  path.carries = 8972;
  path.run(1s);
  EXPECT_EQ(path.mtu.size(), 8972U);
}

TEST(PathMtu, ASegmentLostThreeTimesRaisesTheSuspicion) {
  Path path{.carries = 8972};
  path.mtu.open(8972, path.now);
  path.run(1s);
  path.carries = 1472;
  path.mtu.on_lost(2, path.now);
  path.run(1s);
  EXPECT_EQ(path.mtu.size(), 8972U);
  path.mtu.on_lost(3, path.now);
  path.run(1s);
  EXPECT_EQ(path.mtu.size(), 1472U);
}

TEST(PathMtu, AcknowledgedDataProvesTheSizeToo) {
  Path path{.carries = -1};
  path.mtu.open(8972, path.now);
  EXPECT_FALSE(path.mtu.is_proven_by(8971));
  EXPECT_TRUE(path.mtu.is_proven_by(8972));
  path.mtu.on_proven(path.now);
  EXPECT_EQ(path.next(true), base::kNever);
  EXPECT_FALSE(path.mtu.is_proven_by(65'000)) << "nothing is being tested";
}

TEST(PathMtu, GrowsAgainWhileThereIsTraffic) {
  Path path{.carries = 1472};
  path.mtu.open(8972, path.now);
  path.run(1s);
  EXPECT_EQ(path.mtu.size(), 1472U);
  path.carries = 8972;
  path.run(1h, false);
  EXPECT_EQ(path.mtu.size(), 1472U) << "an idle peer is not asked";
  path.run(10s);
  EXPECT_EQ(path.mtu.size(), 8972U);
}

TEST(PathMtu, FollowsWhatTheKernelSaysAtOnce) {
  Path path{.carries = 8972};
  path.mtu.open(8972, path.now);
  path.mtu.set_goal(1452, path.now);
  EXPECT_EQ(path.mtu.size(), 1452U);
  path.run(1s);
  path.mtu.set_goal(8972, path.now);
  EXPECT_EQ(path.mtu.size(), 1452U) << "wider only when proven";
  path.run(1s);
  EXPECT_EQ(path.mtu.size(), 8972U);
}

TEST(PathMtu, ALowerLimitDuringATestIsTestedToo) {
  Path path{.carries = 1400};
  path.mtu.open(8972, path.now);
  path.mtu.set_goal(1472, path.now);  // of a peer with an interface of another kind
  EXPECT_TRUE(path.mtu.is_testing());
  path.run(1s);
  EXPECT_EQ(path.mtu.size(), 1372U);
}

TEST(PathMtu, ALowerLimitIsReachedAlthoughALongerSizeWasDisproven) {
  Path path{.carries = 1472};
  path.mtu.open(8972, path.now);
  for (int step = 0; step < 100 && path.mtu.size() > PathMtu::kLeast; ++step) path.pass();
  ASSERT_EQ(path.mtu.size(), PathMtu::kLeast);
  path.mtu.set_goal(1472, path.now);
  path.run(1s);
  EXPECT_EQ(path.mtu.size(), 1472U);
}

TEST(PathMtu, TellsThatNotEvenTheLeastPasses) {
  Path path{.carries = 600};
  path.mtu.open(1472, path.now);
  path.run(1s);
  EXPECT_TRUE(path.mtu.is_below_least());
}

TEST(PathMtu, AHintThatLiesCostsAProbeASecondAndNothingElse) {
  Path path{.carries = 8972};
  path.mtu.open(8972, path.now);
  path.run(1s);
  const int probes = path.probes;
  for (int i = 0; i < 10'000; ++i) {
    path.mtu.on_hint(524, path.now);
    EXPECT_EQ(path.mtu.size(), 8972U);
    path.run(1ms);
  }
  EXPECT_EQ(path.mtu.size(), 8972U);
  EXPECT_GE(path.probes - probes, 10);
  EXPECT_LE(path.probes - probes, 20);
}

TEST(PathMtu, AHintThatIsTrueIsFoundOutByProbesAndTriedFirst) {
  Path path{.carries = 8972};
  path.mtu.open(8972, path.now);
  path.run(1s);
  path.carries = 1441;  // no usual size
  path.mtu.on_hint(1441, path.now);
  EXPECT_EQ(path.mtu.size(), 8972U) << "not believed";
  path.run(1s);
  EXPECT_EQ(path.mtu.size(), 1441U);
}

TEST(PathMtu, HintsDoNotPutOffTheNextSearch) {
  Path path{.carries = 1472};
  path.mtu.open(8972, path.now);
  path.run(500ms);
  ASSERT_EQ(path.mtu.size(), 1472U);
  for (int i = 0; i < 40; ++i) {
    path.mtu.on_hint(1300, path.now);
    path.run(100ms, false);
  }
  path.carries = 8972;
  path.run(100ms);
  EXPECT_EQ(path.mtu.size(), 8972U) << "it was due after two seconds";
}

}  // namespace
}  // namespace fairlead::link
