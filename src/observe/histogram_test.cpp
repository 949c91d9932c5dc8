#include "observe/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace fairlead::observe {
namespace {

using base::Duration;
using namespace std::chrono_literals;

TEST(Histogram, OfNothingIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.shortest(), Duration{});
  EXPECT_EQ(histogram.percentile(50), Duration{});
}

TEST(Histogram, SmallTimesAreExact) {
  Histogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.record(Duration{i});
  EXPECT_EQ(histogram.percentile(0), 1ns);
  EXPECT_EQ(histogram.percentile(50), 50ns);
  EXPECT_EQ(histogram.percentile(99), 99ns);
  EXPECT_EQ(histogram.percentile(100), 100ns);
}

TEST(Histogram, PercentilesAreWithinOnePercentOfTheSortedSamples) {
  std::mt19937_64 random{7};
  std::lognormal_distribution<double> time_of{9, 3};
  Histogram histogram;
  std::vector<std::int64_t> samples;
  for (int i = 0; i < 100'000; ++i) {
    const auto time = static_cast<std::int64_t>(std::min(time_of(random), 8e11));
    samples.push_back(time);
    histogram.record(Duration{time});
  }
  std::ranges::sort(samples);
  for (const double percent : {1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(samples.size())));
    const auto exact = static_cast<double>(samples[rank - 1]);
    EXPECT_NEAR(static_cast<double>(histogram.percentile(percent).count()), exact, 1 + exact / 100) << percent;
  }
  EXPECT_EQ(histogram.shortest().count(), samples.front());
  EXPECT_EQ(histogram.longest().count(), samples.back());
}

TEST(Histogram, TimesOutOfRangeAreClipped) {
  Histogram histogram;
  histogram.record(-5ns);
  histogram.record(Duration::max());
  EXPECT_EQ(histogram.shortest(), 0ns);
  EXPECT_EQ(histogram.longest(), Histogram::kLongest);
  EXPECT_EQ(histogram.percentile(100), Histogram::kLongest);
}

TEST(Histogram, AddedUpTheyEqualOneThatSawAll) {
  Histogram left, right, all;
  for (int i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? left : right).record(Duration{i * 977});
    all.record(Duration{i * 977});
  }
  left.add(right);
  EXPECT_EQ(left.count(), all.count());
  for (int percent = 0; percent <= 100; ++percent) EXPECT_EQ(left.percentile(percent), all.percentile(percent));
}

TEST(Histogram, OneSampleManyTimesCountsAsMany) {
  Histogram histogram;
  histogram.record(1us, 99);
  histogram.record(1ms);
  EXPECT_EQ(histogram.count(), 100u);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(99).count()), 1000, 10);
  EXPECT_EQ(histogram.percentile(100), 1ms);
}

}  // namespace
}  // namespace fairlead::observe
