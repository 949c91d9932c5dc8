#include "link/pacer.hpp"

#include <gtest/gtest.h>

namespace fairlead::link {
namespace {

using namespace std::chrono_literals;

constexpr double kGigabitRate = 0.125;  // bytes per nanosecond
constexpr std::uint32_t kPacedSegment = 1472;
constexpr base::Duration kRoundTrip = 10ms;

/// Sends as soon as the pacer allows, until this much is out; returns when the last burst left.
base::Instant pace_all(Pacer& pacer, std::uint64_t bytes, double rate, base::Instant now) {
  for (std::uint64_t sent = 0; sent < bytes;) {
    if (!pacer.may_send(now)) now = pacer.next();
    const std::uint32_t burst = Pacer::burst(rate, kPacedSegment);
    pacer.on_sent(burst, rate, kRoundTrip, now);
    sent += burst;
  }
  return now;
}

TEST(Pacer, SpreadsAWindowOverTheTimeThatThePathTakesForIt) {
  Pacer pacer;
  const base::Instant begin{1s};
  const base::Duration lasted = pace_all(pacer, 64'000, kGigabitRate, begin) - begin;
  EXPECT_GT(lasted, 64'000ns / kGigabitRate / 1.25 - 50us);  // the first burst goes at once
  EXPECT_LT(lasted, 64'000ns / kGigabitRate / 1.25);
}

TEST(Pacer, LetsBurstsPassThatLastThePathAMomentOnly) {
  EXPECT_EQ(Pacer::burst(10 * kGigabitRate, kPacedSegment), 25'000U);
  EXPECT_EQ(Pacer::burst(kGigabitRate / 100, kPacedSegment), 2 * kPacedSegment);
  EXPECT_EQ(Pacer::burst(100 * kGigabitRate, kPacedSegment), 65'507U);
  EXPECT_EQ(Pacer::burst(0, kPacedSegment), 65'507U);
}

TEST(Pacer, RestGivesNoRightToALongBurst) {
  Pacer pacer;
  pace_all(pacer, 64'000, kGigabitRate, base::Instant{1s});
  const base::Instant later{10s};
  const base::Duration lasted = pace_all(pacer, 64'000, kGigabitRate, later) - later;
  EXPECT_GT(lasted, 64'000ns / kGigabitRate / 1.25 - 50us);
}

TEST(Pacer, WhoWaitsAndIsWokenLateMakesUpForIt) {
  Pacer pacer;
  base::Instant now{1s};
  std::uint64_t sent = 0;
  while (now < base::Instant{1s} + 100ms) {
    const std::uint32_t burst = Pacer::burst(kGigabitRate, kPacedSegment);
    while (pacer.may_send(now)) {
      pacer.on_sent(burst, kGigabitRate, kRoundTrip, now);
      sent += burst;
    }
    now += 300us;  // a sleeper's clock is coarse
  }
  EXPECT_NEAR(static_cast<double>(sent), 1.25 * kGigabitRate * 100e6, 0.05 * kGigabitRate * 100e6);
}

TEST(Pacer, DoesNothingWhileTheRateIsNotKnown) {
  Pacer pacer;
  pacer.on_sent(1 << 20, 0, kRoundTrip, base::Instant{1s});
  EXPECT_TRUE(pacer.may_send(base::Instant{1s}));
}

/// Seen in a simulated world (seed 7700129): after a partition the rate was 2 bytes a millisecond, and a put of 500 KB
/// waited 26 s.
TEST(Pacer, WaitsForARoundTripAtMostHoweverLittleWasDelivered) {
  Pacer pacer;
  const base::Instant now{1s};
  pacer.on_sent(65'000, 2e-6, kRoundTrip, now);
  EXPECT_FALSE(pacer.may_send(now));
  EXPECT_EQ(pacer.next(), now + kRoundTrip);
}

}  // namespace
}  // namespace fairlead::link
