#pragma once
// The data of a plot, in equal steps of time: bytes in flight and round-trip time of each pair of hosts with a flow,
// goodput of each receiver.

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "sim/host.hpp"

namespace fairlead::sim {

class Samples {
 public:
  /// Pairs beyond the first kLinesMax are omitted.
  Samples(const Scenario& scenario, base::Instant begins, base::Duration time);

  base::Instant next_at() const { return next_at_; }
  void take(std::vector<Host>& hosts, base::Instant now);

  struct Line {
    std::string label;
    std::vector<double> values;  // one per step; NaN if there is none
  };
  const std::vector<double>& seconds() const { return seconds_; }
  const std::vector<Line>& in_flight_kib() const { return in_flight_; }
  const std::vector<Line>& round_trip_us() const { return round_trip_; }
  const std::vector<Line>& goodput_mb_per_s() const { return goodput_; }

 private:
  static constexpr std::size_t kLinesMax = 8;
  static constexpr std::int64_t kSteps = 500;
  static constexpr std::size_t kStepsMax = 2 * kSteps;

  struct Pair {
    std::uint32_t from = 0, to = 0;
    bool operator==(const Pair&) const = default;
  };

  base::Instant begins_, next_at_;
  base::Duration step_;
  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> receivers_;
  std::vector<std::uint64_t> delivered_;  // by receiver, at the last step
  std::vector<double> seconds_;
  std::vector<Line> in_flight_, round_trip_, goodput_;
};

}  // namespace fairlead::sim
