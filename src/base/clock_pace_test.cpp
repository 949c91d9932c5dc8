#include "base/clock_pace.hpp"

#include <gtest/gtest.h>

namespace fairlead::base {
namespace {

using namespace std::chrono_literals;

// Polls every `apart` for a while; returns the longest time between two readings of the clock, once the pace has
// settled.
Duration longest_unasked(ClockPace& pace, Instant& now, Duration apart, int polls) {
  Instant asked = now;
  Duration longest{};
  for (int i = 0; i < polls; ++i) {
    now += apart;
    if (pace.may_skip()) continue;
    if (i > polls / 2) longest = std::max(longest, now - asked);
    asked = pace.asked(now);
  }
  return longest;
}

TEST(ClockPace, AsksEverySoOftenHoweverOftenItIsPolled) {
  ClockPace pace;
  Instant now{1s};
  EXPECT_LE(longest_unasked(pace, now, 20ns, 10'000), 20us);
  EXPECT_GE(longest_unasked(pace, now, 20ns, 10'000), 2us) << "else it saves nothing";
  EXPECT_LE(longest_unasked(pace, now, 1us, 10'000), 20us);
  EXPECT_LE(longest_unasked(pace, now, 100us, 10'000), 100us) << "one that polls seldom asks each time";
}

TEST(ClockPace, AsksAtOnceAfterAPause) {
  ClockPace pace;
  Instant now{1s};
  longest_unasked(pace, now, 20ns, 1000);
  pace.stop();
  EXPECT_FALSE(pace.may_skip());
}

}  // namespace
}  // namespace fairlead::base
