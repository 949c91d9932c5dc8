#include "tools/perf/loss.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead::tools {
namespace {

TEST(PerfLoss, RatesAreReadAsPartsOrPercent) {
  EXPECT_THAT(*parse_losses("0,0.1%,1%,5%"), testing::ElementsAre(0, 0.001, 0.01, 0.05));
}

TEST(PerfLoss, WhatIsNoRateIsRefusedByName) {
  for (const char* text : {"", "1%,", "%", "-1%", "51%", "nan", "1%%", "x", "1 %x"}) {
    const auto parsed = parse_losses(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().status, Status::invalid);
  }
  EXPECT_THAT(parse_losses("1%,60%").error().message, testing::HasSubstr("'60%' is no loss"));
}

}  // namespace
}  // namespace fairlead::tools
