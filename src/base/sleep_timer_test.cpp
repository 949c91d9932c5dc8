#include "base/sleep_timer.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>

namespace fairlead::base {
namespace {

using namespace std::chrono_literals;

bool is_readable(int descriptor, int milliseconds) {
  pollfd poll{descriptor, POLLIN, 0};
  return ::poll(&poll, 1, milliseconds) == 1;
}

Instant now() {
  return MonotonicClock::now();
}

TEST(SleepTimer, FiresAtItsTimeAndIsQuietWhenSetAgain) {
  SleepTimer timer;
  const Instant due = now() + 2ms;
  const int descriptor = timer.descriptor_for(due, now());
  ASSERT_GE(descriptor, 0);
  EXPECT_TRUE(is_readable(descriptor, 30'000));
  EXPECT_GE(now(), due);
  EXPECT_EQ(timer.descriptor_for(now() + 60s, now()), descriptor);
  EXPECT_FALSE(is_readable(descriptor, 0));
}

TEST(SleepTimer, IsNeverLate) {
  SleepTimer timer;
  const int descriptor = timer.descriptor_for(now() + 60s, now());
  EXPECT_FALSE(is_readable(descriptor, 0));
  timer.descriptor_for(now() + 1ms, now());
  EXPECT_TRUE(is_readable(descriptor, 30'000));
  timer.descriptor_for(now(), now());
  EXPECT_TRUE(is_readable(descriptor, 30'000)) << "a time that is over";
}

// A later deadline leaves the timer as it is: it fires early, once.
TEST(SleepTimer, StaysSetWhenTheDeadlineMovesLater) {
  SleepTimer timer;
  const int descriptor = timer.descriptor_for(now() + 2ms, now());
  timer.descriptor_for(now() + 60s, now());
  EXPECT_TRUE(is_readable(descriptor, 30'000));
  timer.descriptor_for(now() + 60s, now());
  EXPECT_FALSE(is_readable(descriptor, 0));
}

TEST(SleepTimer, EndsASleep) {
  SleepTimer timer;
  const auto began = now();
  for (const Duration length : {2ms, 12ms}) {  // by the timer, and without it
    std::array<pollfd, 2> descriptors{{{-1, POLLIN, 0}, {}}};
    const auto due = now() + length;
    timer.sleep(descriptors, due);
    EXPECT_GE(now(), due);
  }
  std::array<pollfd, 1> none{};
  timer.sleep(none, began);  // a time that is over
}

}  // namespace
}  // namespace fairlead::base
