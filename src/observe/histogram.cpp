#include "observe/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fairlead::observe {

std::size_t Histogram::bucket_of(std::uint64_t time) noexcept {
  // Shifts the time until it fits kFineBits. The shift selects the octave, the remaining bits the bucket in its upper
  // half.
  const int width = static_cast<int>(std::bit_width(time));
  const int shift = std::max(0, width - kFineBits);
  return static_cast<std::size_t>(shift) * kHalf + static_cast<std::size_t>(time >> shift);
}

std::uint64_t Histogram::middle_of(std::size_t bucket) noexcept {
  const std::size_t shift = bucket < 2 * kHalf ? 0 : bucket / kHalf - 1;
  const std::uint64_t first = static_cast<std::uint64_t>(bucket - shift * kHalf) << shift;
  return first + ((std::uint64_t{1} << shift) - 1) / 2;
}

void Histogram::record(base::Duration time, std::uint64_t times) noexcept {
  const std::int64_t clipped = std::clamp<std::int64_t>(time.count(), 0, kLongest.count());
  buckets_[bucket_of(static_cast<std::uint64_t>(clipped))] += times;
  count_ += times;
  shortest_ = std::min(shortest_, clipped);
  longest_ = std::max(longest_, clipped);
}

void Histogram::add(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  shortest_ = std::min(shortest_, other.shortest_);
  longest_ = std::max(longest_, other.longest_);
}

base::Duration Histogram::percentile(double percent) const noexcept {
  if (count_ == 0) return {};
  const double wanted = std::ceil(static_cast<double>(count_) * std::clamp(percent, 0.0, 100.0) / 100.0);
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_);
  if (rank == count_) return longest();
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while ((seen += buckets_[bucket]) < rank) ++bucket;
  const auto middle = static_cast<std::int64_t>(middle_of(bucket));
  return base::Duration{std::clamp(middle, shortest_, longest_)};
}

}  // namespace fairlead::observe
