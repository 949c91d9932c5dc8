#pragma once
// The random generator of a run: SplitMix64, whose results are equal on every machine and with every library.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// Returns a number in [0, 1).
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return share() < probability; }
  /// Returns a number in [0, bound), bound > 0. The bias of the remainder does not matter here.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// Returns a number in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  base::Duration between(base::Duration low, base::Duration high) {
    return base::Duration(static_cast<std::int64_t>(
        between(static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count()))));
  }

  /// Returns a number in [low, high] whose magnitudes are equally likely: mostly small.
  std::uint64_t mostly_small(std::uint64_t low, std::uint64_t high) {
    const std::uint64_t doublings = std::bit_width(high - low);
    const std::uint64_t reach = doublings == 0 ? 0 : std::uint64_t{1} << below(doublings + 1);
    return low + below(std::min(reach, high - low) + 1);
  }

  /// Returns a generator for a part of the world, so that it does not shift the draws of other parts.
  Random fork() { return Random(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace fairlead::sim
