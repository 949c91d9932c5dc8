#pragma once
// A histogram of times in fixed memory, for percentiles of millions of samples.
//
// Model. Log-linear buckets: times below 2^kFineBits ns have a bucket each. Above, each power of two has 2^kFineBits /
// 2 equal buckets, so a bucket is never wider than 1/64 of its times. Times above kLongest count as kLongest. Each
// thread has its own histogram, and they are added up afterwards.

#include <array>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::observe {

class Histogram {
 public:
  static constexpr base::Duration kLongest = std::chrono::minutes{15};

  void record(base::Duration time) noexcept { record(time, 1); }
  void record(base::Duration time, std::uint64_t times) noexcept;
  void add(const Histogram& other) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  /// Exact values, not rounded to a bucket; zero if nothing was recorded.
  base::Duration shortest() const noexcept { return count_ == 0 ? base::Duration{} : base::Duration{shortest_}; }
  base::Duration longest() const noexcept { return base::Duration{longest_}; }
  /// Returns the time that `percent` of the samples do not exceed (50: median), as the middle of its bucket. Zero if
  /// nothing was recorded.
  base::Duration percentile(double percent) const noexcept;

 private:
  static constexpr int kFineBits = 7;
  static constexpr int kOctaves = 40 - kFineBits + 1;  // 2^40 ns are 18 minutes
  static constexpr std::size_t kHalf = std::size_t{1} << (kFineBits - 1);
  static constexpr std::size_t kBuckets = (kOctaves + 1) * kHalf;

  static std::size_t bucket_of(std::uint64_t time) noexcept;
  static std::uint64_t middle_of(std::size_t bucket) noexcept;

  std::uint64_t count_ = 0;
  std::int64_t shortest_ = kLongest.count();
  std::int64_t longest_ = 0;
  std::array<std::uint64_t, kBuckets> buckets_{};
};

}  // namespace fairlead::observe
