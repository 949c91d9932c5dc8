#include "link/reorder_window.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace fairlead::link {
namespace {

using namespace std::chrono_literals;

constexpr base::Instant kNow{1s};

TEST(ReorderWindow, BeginsAtItsLeast) {
  const ReorderWindow window;
  EXPECT_EQ(window.positions(3), 3U);
  EXPECT_EQ(window.patience(80us), 90us);
}

TEST(ReorderWindow, WaitsALittleLongerThanWhatItSaw) {
  ReorderWindow window;
  window.saw(64, 160us);
  EXPECT_EQ(window.positions(3), 81U);
  EXPECT_EQ(window.patience(80us), 200us);
  window.saw(10, 100us);
  EXPECT_EQ(window.positions(3), 81U);
}

TEST(ReorderWindow, PatienceHasABoundInRoundTrips) {
  ReorderWindow window;
  window.saw(64, 1s);
  EXPECT_EQ(window.patience(100us), 800us);
}

TEST(ReorderWindow, ASuspicionCountsWhenItIsConfirmed) {
  ReorderWindow window;
  window.suspect(40, 120us);
  EXPECT_EQ(window.positions(3), 3U);
  window.confirm(80us, kNow);
  EXPECT_EQ(window.positions(3), 51U);
  EXPECT_EQ(window.patience(80us), 150us);
}

TEST(ReorderWindow, ANeedlessResendThatNobodySuspectedDoublesOncePerRoundTrip) {
  ReorderWindow window;
  window.confirm(80us, kNow);
  const std::uint64_t once = window.positions(3);
  EXPECT_GE(once, 6U);
  window.confirm(80us, kNow + 10us);
  EXPECT_EQ(window.positions(3), once);
  window.confirm(80us, kNow + 80us);
  EXPECT_GE(window.positions(3), 2 * once - 3);
}

TEST(ReorderWindow, WhatIsNotSeenAnyMoreFades) {
  ReorderWindow window;
  window.saw(64, 160us);
  std::uint64_t order = 0;
  window.fade(order += ReorderWindow::kFadeAfter);
  EXPECT_EQ(window.positions(3), 81U) << "it was seen since the last time";
  for (int i = 0; i < 30; ++i) window.fade(order += ReorderWindow::kFadeAfter);
  EXPECT_EQ(window.positions(3), 3U);
  EXPECT_EQ(window.patience(80us), 90us);
}

TEST(ReorderWindow, WhatIsSeenAgainAndAgainStays) {
  ReorderWindow window;
  std::uint64_t order = 0;
  for (int i = 0; i < 30; ++i) {
    window.saw(64, 160us);
    window.fade(order += ReorderWindow::kFadeAfter);
    EXPECT_EQ(window.positions(3), 81U);
  }
}

}  // namespace
}  // namespace fairlead::link
