#include "path/fault_plan.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fairlead::path {
namespace {

using namespace std::chrono_literals;

TEST(FaultPlan, ReadsEveryWord) {
  const auto plan = FaultPlan::parse(
      "drop=1%,burst=40,reorder=2.5%:5:64,hold=2ms,duplicate=100%,corrupt=0.0001%,delay=1.5ms,jitter=200us,seed=7");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->drop.per_million, 10'000u);
  EXPECT_EQ(plan->burst, 40u);
  EXPECT_EQ(plan->reorder.per_million, 25'000u);
  EXPECT_EQ(plan->distance_min, 5u);
  EXPECT_EQ(plan->distance_max, 64u);
  EXPECT_EQ(plan->hold, 2ms);
  EXPECT_EQ(plan->duplicate.per_million, 1'000'000u);
  EXPECT_EQ(plan->corrupt.per_million, 1u);
  EXPECT_EQ(plan->delay, 1500us);
  EXPECT_EQ(plan->jitter, 200us);
  EXPECT_EQ(plan->seed, 7u);
}

TEST(FaultPlan, PrintsWhatItRead) {
  constexpr std::array kTexts{
      "",
      "drop=1%",
      "drop=100%,burst=1000",
      "drop=1%,reorder=5:64,duplicate=1%,corrupt=0.1%,delay=1ms,seed=7",
      "reorder=0.25%:1:1000,hold=0s",
      "delay=10s,jitter=1ns",
      "seed=18446744073709551615",
  };
  for (const char* text : kTexts) {
    const auto plan = FaultPlan::parse(text);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->to_string(), text);
  }
}

TEST(FaultPlan, TakesOtherWaysToSayTheSame) {
  EXPECT_EQ(FaultPlan::parse("delay=1000us")->to_string(), "delay=1ms");
  EXPECT_EQ(FaultPlan::parse("delay=0.001s")->to_string(), "delay=1ms");
  EXPECT_EQ(FaultPlan::parse("reorder=1.0000%:5:64")->to_string(), "reorder=5:64");
  EXPECT_EQ(FaultPlan::parse("seed=7,drop=01.50%")->to_string(), "drop=1.5%,seed=7");
}

TEST(FaultPlan, AShareOfZeroSwitchesOff) {
  const auto plan = FaultPlan::parse("drop=0%,burst=40,reorder=0%:5:64,hold=9ms,seed=3");
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->has_faults());
  EXPECT_EQ(plan->to_string(), "seed=3");
  EXPECT_TRUE(FaultPlan::parse("jitter=1us")->has_faults());
  EXPECT_FALSE(FaultPlan{}.has_faults());
}

TEST(FaultPlan, NamesTheWordAndTheRightForm) {
  struct Row {
    const char* text;
    const char* named;   // the word as typed
    const char* remedy;  // a form that works
  };
  constexpr std::array kRows{
      Row{"drop", "'drop'", "drop=1%"},
      Row{"drop=", "'drop='", "drop=1%"},
      Row{"drop=1", "'drop=1'", "drop=1%"},
      Row{"drop=-1%", "'drop=-1%'", "0% to 100%"},
      Row{"drop=101%", "'drop=101%'", "0% to 100%"},
      Row{"drop=1.%", "'drop=1.%'", "drop=1%"},
      Row{"drop=.5%", "'drop=.5%'", "drop=1%"},
      Row{"drop=0.00001%", "'drop=0.00001%'", "drop=1%"},
      Row{"drop=1%%", "'drop=1%%'", "drop=1%"},
      Row{"drop=18446744073709551615%", "'drop=18446744073709551615%'", "0% to 100%"},
      Row{"drop=1%,,delay=1ms", "''", "separated by commas"},
      Row{",", "''", "drop=1%"},
      Row{"drop=1% delay=1ms", "'drop=1% delay=1ms'", "drop=1%"},
      Row{"loss=1%", "'loss=1%'", "drop"},
      Row{"Drop=1%", "'Drop=1%'", "drop"},
      Row{"drop=1%,drop=2%", "'drop=2%'", "keep one"},
      Row{"burst=40", "'burst'", "add drop=1%"},
      Row{"drop=1%,burst=0", "'burst=0'", "burst=40"},
      Row{"drop=1%,burst=1001", "'burst=1001'", "1 to 1000"},
      Row{"reorder=64", "'reorder=64'", "reorder=5:64"},
      Row{"reorder=64:5", "'reorder=64:5'", "reorder=5:64"},
      Row{"reorder=0:5", "'reorder=0:5'", "1 to 1000"},
      Row{"reorder=5%:64", "'reorder=5%:64'", "reorder=2%:5:64"},
      Row{"reorder=1:2:3", "'reorder=1:2:3'", "reorder=2%:5:64"},
      Row{"burst=1", "'burst'", "add drop=1%"},
      Row{"hold=1ms", "'hold'", "add reorder=5:64"},
      Row{"delay=1", "'delay=1'", "delay=1ms"},
      Row{"delay=ms", "'delay=ms'", "delay=1ms"},
      Row{"delay=11s", "'delay=11s'", "up to 10s"},
      Row{"delay=0.5ns", "'delay=0.5ns'", "delay=1ms"},
      Row{"delay=1m", "'delay=1m'", "delay=1ms"},
      Row{"seed=18446744073709551616", "'seed=18446744073709551616'", "64 bits"},
      Row{"seed=0x7", "'seed=0x7'", "seed=7"},
      Row{"\nd\xff=1", "'?d?=1'", "drop=1%"},
  };
  for (const Row& row : kRows) {
    const auto plan = FaultPlan::parse(row.text);
    ASSERT_FALSE(plan) << row.text << " became " << plan->to_string();
    EXPECT_EQ(plan.error().status, Status::invalid);
    EXPECT_NE(plan.error().message.find(row.named), std::string::npos) << row.text << ": " << plan.error().message;
    EXPECT_NE(plan.error().message.find(row.remedy), std::string::npos) << row.text << ": " << plan.error().message;
    EXPECT_EQ(plan.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace fairlead::path
