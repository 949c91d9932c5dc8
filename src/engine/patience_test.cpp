#include "engine/patience.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace fairlead::engine {
namespace {

using namespace std::chrono_literals;

TEST(Patience, WhatWasGrantedFirstIsDueFirst) {
  Patience patience(5s);
  EXPECT_EQ(patience.next_deadline(), base::kNever);
  patience.grant(1, base::Instant{1s});
  patience.grant(2, base::Instant{2s});
  EXPECT_EQ(patience.next_deadline(), base::Instant{6s});
  EXPECT_EQ(patience.first().name, 1u);
  patience.take_first();
  EXPECT_EQ(patience.next_deadline(), base::Instant{7s});
  patience.take_first();
  EXPECT_TRUE(patience.is_empty());
}

}  // namespace
}  // namespace fairlead::engine
