#include "qp/pair_timers.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace fairlead::qp {
namespace {

using std::chrono::milliseconds;
constexpr base::Instant kStart{std::chrono::seconds(1)};

TEST(PairTimers, EndInOrderAndAreOnlyMovedForward) {
  PairTimer early{.hook = {}, .pair = 1}, late{.hook = {}, .pair = 2};
  PairTimers timers;
  EXPECT_EQ(timers.next(), base::kNever);
  timers.set(late, kStart + milliseconds(5));
  timers.set(early, kStart + milliseconds(9));
  timers.set(early, kStart + milliseconds(2));
  timers.set(late, kStart + milliseconds(7));
  timers.set(late, base::kNever);
  EXPECT_EQ(timers.next(), kStart + milliseconds(2));
  EXPECT_EQ(timers.take(kStart), std::nullopt);
  EXPECT_EQ(timers.take(kStart + milliseconds(5)), 1u);
  EXPECT_EQ(timers.take(kStart + milliseconds(5)), 2u);
  EXPECT_EQ(timers.take(kStart + milliseconds(99)), std::nullopt);
}

TEST(PairTimers, AreForgottenWithTheirPair) {
  PairTimers timers;
  {
    PairTimer timer;
    timers.set(timer, kStart);
  }
  EXPECT_EQ(timers.next(), base::kNever);
}

}  // namespace
}  // namespace fairlead::qp
