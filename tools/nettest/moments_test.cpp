#include "tools/nettest/moments.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fairlead::tools {
namespace {

using std::chrono::nanoseconds;

TEST(Moments, SayWhatTheyWereGiven) {
  Moments moments;
  EXPECT_EQ(moments.least(), Duration::zero());
  EXPECT_EQ(moments.deviation_ns(), 0);
  for (const int time : {2, 4, 4, 4, 5, 5, 7, 9}) moments.record(nanoseconds(time));
  EXPECT_EQ(moments.count(), 8u);
  EXPECT_EQ(moments.least(), nanoseconds(2));
  EXPECT_EQ(moments.greatest(), nanoseconds(9));
  EXPECT_DOUBLE_EQ(moments.mean_ns(), 5);
  EXPECT_DOUBLE_EQ(moments.deviation_ns(), 2);
}

// Longer than a day, so that the sums do not fit into 64 bits.
TEST(Moments, PartsAddUpToExactlyTheWhole) {
  Moments whole;
  std::array<Moments, 3> parts;
  for (std::size_t i = 0; i < 3000; ++i) {
    const nanoseconds time(100'000'000'000'007 + static_cast<std::int64_t>(i * i));
    whole.record(time);
    parts.at(i % 3).record(time);
  }
  Moments sum;
  for (const Moments& part : parts) sum += nlohmann::json::parse(nlohmann::json(part).dump()).get<Moments>();
  EXPECT_EQ(sum, whole);
  EXPECT_EQ(sum.deviation_ns(), whole.deviation_ns());
}

TEST(Moments, OtherJsonIsNone) {
  for (const char* text : {"[]", "{}", "[1,2,3,4,5,6]", "[1,2,\"x\",4,5,6,7]"})
    EXPECT_THROW(nlohmann::json::parse(text).get<Moments>(), nlohmann::json::exception) << text;
}

}  // namespace
}  // namespace fairlead::tools
