// Runs the window against a modelled bottleneck; the test compares the curve that it prints.

#include "link/congestion_window.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace fairlead::link {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMost = 1 << 20, kSegment = 2304, kLeast = 2 * kSegment, kAllowance = 64 << 10,
                        kFirst = 256 << 10;
constexpr base::Duration kEmpty = 20us;

/// A path shared by `senders` equal senders: its rate, its queue, and random losses besides those of a full queue.
struct Bottleneck {
  double bytes_per_us = 1250;  // 10 Gb/s
  double queue_most = 1 << 20;
  double loss = 0;
  std::uint64_t senders = 1;
  base::Duration busy{};  // delay that a busy host adds to each sample

  CongestionWindow window;
  base::Instant now{1h};  // longer than any pause, as after a boot
  double lost_in_full = 0, losses_due = 0;

  Bottleneck() { window.open(kMost, kLeast, kAllowance, kFirst); }

  base::Duration round() {
    const double bytes = static_cast<double>(window.bytes() * senders);
    const double pipe = bytes_per_us * 20;
    const double queue = std::min(std::max(bytes - pipe, 0.0), queue_most);
    lost_in_full = std::max(bytes - pipe - queue_most, 0.0) / bytes;
    const auto round_trip = kEmpty + base::Duration(static_cast<std::int64_t>(queue / bytes_per_us * 1000)) + busy;
    const std::uint64_t segments = std::max<std::uint64_t>(window.bytes() / kSegment, 1);
    losses_due += static_cast<double>(segments) * (loss + lost_in_full);
    for (; losses_due >= 1; losses_due -= 1) window.on_loss();
    now += round_trip;
    window.on_ack(segments, window.bytes(), window.bytes(), round_trip, now);
    return round_trip;
  }

  /// The window after 1, 2, 5, 10, ... round trips.
  std::string curve(int rounds) {
    std::string text = "round  window  round trip us  lost %\n";
    for (int i = 1; i <= rounds; ++i) {
      const base::Duration round_trip = round();
      if (i <= 10 || i % 10 == 0) {
        char line[80];
        std::snprintf(line, sizeof line, "%5d %7lu %14ld %7.1f\n", i, static_cast<unsigned long>(window.bytes()),
                      static_cast<long>(round_trip.count() / 1000), 100 * lost_in_full);
        text += line;
      }
    }
    return text;
  }
};

/// A window that has seen the empty path before the crowd comes.
void see_empty_path(Bottleneck& path) {
  path.window.on_ack(1, kSegment, kSegment, kEmpty, path.now);
  path.now += 1ms;
}

TEST(CongestionWindow, IsNoBoundOnAnUncongestedPath) {
  Bottleneck path;
  path.bytes_per_us = 25'000;  // 1 MiB in flight makes a queue of 20 us
  see_empty_path(path);
  path.curve(100);
  EXPECT_FALSE(path.window.is_limiting());
}

TEST(CongestionWindow, AloneOnALineItKeepsItsQueueShortAndTheLineFull) {
  Bottleneck path;
  see_empty_path(path);
  const std::string curve = path.curve(200);
  EXPECT_LE(path.round(), kEmpty + 100us) << "1 MiB would wait for 840 us\n" << curve;
  EXPECT_GE(path.window.bytes(), 25'000U) << "the line must not run dry\n" << curve;
}

TEST(CongestionWindow, RandomLossOfFivePerCentMeansNothing) {
  Bottleneck path;
  path.loss = 0.05;
  path.bytes_per_us = 25'000;
  see_empty_path(path);
  path.curve(1000);
  EXPECT_FALSE(path.window.is_limiting());
}

TEST(CongestionWindow, ALittleNowAndThenSaysNothingOfTheRate) {
  Bottleneck path;
  see_empty_path(path);
  path.curve(200);
  const double rate = path.window.rate();
  for (int i = 0; i < 200; ++i) {
    path.now += 100ms;
    path.window.on_ack(1, kSegment, kSegment, kEmpty, path.now);
  }
  EXPECT_GE(path.window.rate(), rate / 2);
  path.bytes_per_us /= 100;
  path.curve(200);
  EXPECT_LE(path.window.rate(), rate / 10) << "a path that became narrower is believed";
}

TEST(CongestionWindow, SixtyFourSendersToOneStopOverflowingTheQueue) {
  Bottleneck path;
  path.senders = 64;
  see_empty_path(path);
  const std::string curve = path.curve(200);
  // Without grants the windows swing around what fits, so the queue is full part of the time.
  int full = 0;
  for (int i = 0; i < 100; ++i) {
    path.round();
    full += path.lost_in_full > 0.02;
    EXPECT_LT(path.window.bytes(), 30'000U);
  }
  EXPECT_LT(full, 60) << curve;
  EXPECT_GE(path.window.bytes() * path.senders, 25'000U) << "the line must not run dry\n" << curve;
  path.senders = 1;
  path.curve(200);
  EXPECT_GE(path.window.bytes(), kAllowance) << "it grows again when the others have gone";
}

TEST(CongestionWindow, AnEndlessQueueIsKeptShort) {
  Bottleneck path;
  path.senders = 64;
  path.queue_most = 1e12;
  see_empty_path(path);
  path.curve(100);
  EXPECT_LE(path.window.bytes(), kMost / 2);
  EXPECT_GE(path.window.bytes(), kAllowance);
}

TEST(CongestionWindow, ABusyHostIsNoCongestion) {
  Bottleneck path;
  see_empty_path(path);
  path.busy = 2ms;
  path.loss = 0.01;
  const std::string curve = path.curve(100);
  EXPECT_FALSE(path.window.is_limiting()) << "a smaller window was tried, delivered less, and was given up\n" << curve;
}

/// A path of 60 us between hosts that need another 110 us for a window of any size: what it delivers grows with the
/// window.
struct SlowHosts {
  CongestionWindow window;
  base::Instant now{1h};

  explicit SlowHosts(std::uint64_t first) {
    window.open(kMost, kLeast, kAllowance, first);
    round(kSegment, 60us);
  }
  void round(std::uint64_t bytes, base::Duration round_trip = 170us) {
    now += round_trip;
    window.on_ack(bytes / kSegment, bytes, bytes, round_trip, now);
  }
};

// Each step of the window is small, because the last rate of delivery is remembered.
TEST(CongestionWindow, ManySmallStepsThatCostThroughputAreUndone) {
  SlowHosts path(kMost);
  std::uint64_t least = kMost;
  for (int i = 0; i < 100; ++i) {
    path.round(path.window.bytes());
    least = std::min(least, path.window.bytes());
  }
  EXPECT_LT(least, kMost * 3 / 4) << "it was tried";
  EXPECT_FALSE(path.window.is_limiting());
  EXPECT_FALSE(path.window.is_congested());
  int rounds_limited = 0;
  for (int i = 0; i < 20'000; ++i) {
    path.round(path.window.bytes());
    rounds_limited += path.window.is_limiting();
  }
  EXPECT_GT(rounds_limited, 0) << "it is tried again";
  EXPECT_LT(rounds_limited, 200);
}

TEST(CongestionWindow, AQueueThatStandsDoesNotEndATrialOfMore) {
  SlowHosts path(kFirst);
  int trials = 0, rounds_larger = 0;
  std::uint64_t before = 0;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t now = path.window.bytes();
    path.round(now);
    if (path.window.bytes() == 2 * now) {
      ++trials;
      before = now;
    }
    if (trials == 1 && path.window.bytes() == 2 * before) ++rounds_larger;
  }
  EXPECT_GT(trials, 0);
  EXPECT_GE(rounds_larger, 4);
  EXPECT_GE(path.window.bytes(), 3 * kFirst) << "twice the window delivers twice as much";
}

TEST(CongestionWindow, HeavyLossShrinksItToTwoSegmentsAtLeast) {
  Bottleneck path;
  path.loss = 0.5;
  see_empty_path(path);
  path.curve(300);
  EXPECT_GE(path.window.bytes(), kLeast);
  EXPECT_LE(path.window.bytes(), 2 * kLeast);
  path.loss = 0;
  path.curve(300);
  EXPECT_GE(path.window.bytes(), kAllowance);
}

// A line that drops what exceeds its rate, and delays nothing.
TEST(CongestionWindow, HeavyLossWithoutAQueueShrinksItToo) {
  Bottleneck path;
  path.bytes_per_us = 1e6;
  path.loss = 0.5;
  see_empty_path(path);
  path.curve(300);
  EXPECT_LE(path.window.bytes(), 2 * kLeast);
  EXPECT_TRUE(path.window.is_congested());
}

/// One round of a flow that uses a part of its window.
void round_of(Bottleneck& path, std::uint64_t bytes, base::Duration round_trip) {
  path.now += round_trip;
  path.window.on_ack(bytes / kSegment, bytes, bytes, round_trip, path.now);
}
/// Enough rounds for a queue that stands.
void rounds_of(Bottleneck& path, std::uint64_t bytes, base::Duration round_trip) {
  for (int i = 0; i < 4; ++i) round_of(path, bytes, round_trip);
}

TEST(CongestionWindow, AQueueThatComesAndGoesDoesNotStand) {
  Bottleneck path;
  see_empty_path(path);
  for (int i = 0; i < 300; ++i) round_of(path, 260'000, kEmpty + (i % 4 == 0 ? 10us : 100us));
  EXPECT_FALSE(path.window.is_congested());
}

// What the path delivered before others came is no measure for a smaller window.
TEST(CongestionWindow, APathThatDeliversLessIsNoReasonToUndoASmallerWindow) {
  Bottleneck path;
  path.bytes_per_us = 20'000;
  see_empty_path(path);
  path.curve(100);
  EXPECT_FALSE(path.window.is_limiting());
  path.bytes_per_us = 1250;
  path.curve(200);
  EXPECT_LE(path.round(), kEmpty + 110us);
}

// A host that takes 80 us for a message of 64 KiB is slow, and its network is not.
TEST(CongestionWindow, AShortDelayOfALoneMessageIsNoQueue) {
  Bottleneck path;
  see_empty_path(path);
  for (int i = 0; i < 100; ++i) round_of(path, 100'000, kEmpty + 100us);
  EXPECT_FALSE(path.window.is_congested());
  rounds_of(path, 100'000, kEmpty + 200us);
  EXPECT_TRUE(path.window.is_congested()) << "what delays for longer is one";
  Bottleneck other;
  see_empty_path(other);
  rounds_of(other, 200'000, kEmpty + 100us);
  EXPECT_TRUE(other.window.is_congested()) << "so is the same delay by more bytes";
}

TEST(CongestionWindow, APathWithoutAQueueForAWhileIsNotCongested) {
  Bottleneck path;
  see_empty_path(path);
  const auto wait_until_free = [&] {
    rounds_of(path, 100'000, kEmpty + 500us);
    EXPECT_TRUE(path.window.is_congested());
    const base::Instant since = path.now;
    while (path.window.is_congested() && path.now - since < 10s) round_of(path, 40'000, kEmpty);
    return path.now - since;
  };
  const base::Duration first = wait_until_free();
  EXPECT_GE(first, 1s);
  EXPECT_LT(first, 1100ms);
  EXPECT_GE(path.window.bytes(), kFirst);
  EXPECT_GE(wait_until_free(), 2s) << "it waits for longer the next time";
}

TEST(CongestionWindow, APauseOfTheFlowIsNoPathWithoutAQueue) {
  Bottleneck path;
  see_empty_path(path);
  rounds_of(path, 100'000, kEmpty + 500us);
  ASSERT_TRUE(path.window.is_congested());
  for (int pause = 0; pause < 9; ++pause) {
    path.now += 70s;
    round_of(path, 40'000, kEmpty);
    EXPECT_TRUE(path.window.is_congested()) << pause;
  }
  path.now += 70s;
  round_of(path, 40'000, kEmpty);
  round_of(path, 40'000, kEmpty);
  EXPECT_FALSE(path.window.is_congested()) << "ten bursts without a queue are enough";
  rounds_of(path, 100'000, kEmpty + 500us);
  path.now += 70s;
  round_of(path, 100'000, kEmpty + 500us);
  ASSERT_TRUE(path.window.is_congested());
  for (int i = 0; i < 150'000; ++i) round_of(path, 40'000, kEmpty);
  EXPECT_FALSE(path.window.is_congested()) << "a queue after a pause counts from now on";
}

TEST(CongestionWindow, ALongerRouteIsBelievedInTime) {
  Bottleneck path;
  path.bytes_per_us = 25'000;
  see_empty_path(path);
  path.busy = 10ms;
  path.curve(100);
  EXPECT_TRUE(path.window.is_limiting());
  path.curve(3000);
  EXPECT_FALSE(path.window.is_limiting());
}

}  // namespace
}  // namespace fairlead::link
