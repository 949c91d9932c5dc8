#pragma once
// The faults that a faulty path injects, as a value and as the text that people type (docs/faults.md):
//   drop=1%,reorder=5:64,duplicate=1%,delay=1ms,corrupt=0.1%,seed=7
// Shares are kept in parts per million, so that a plan prints as it was written and compares exactly.

#include <cstdint>
#include <string>
#include <string_view>

#include <fairlead/error.hpp>

#include "base/time.hpp"

namespace fairlead::path {

/// A part of the whole, 0 % to 100 %, in steps of 0.0001 %.
struct Share {
  std::uint32_t per_million = 0;
  bool operator==(const Share&) const = default;
};
inline constexpr std::uint32_t kMillion = 1'000'000;

struct FaultPlan {
  static constexpr std::uint32_t kBurstMax = 1000;
  static constexpr std::uint32_t kDistanceMax = 1000;
  static constexpr base::Duration kTimeMax = std::chrono::seconds(10);

  Share drop;
  std::uint32_t burst = 1;  // datagrams lost in a row; `drop` stays the share of all
  /// A reordered datagram waits until distance_min to distance_max later ones to its peer have passed, or until `hold`
  /// ends.
  Share reorder;
  std::uint32_t distance_min = 1, distance_max = 1;
  base::Duration hold = std::chrono::milliseconds(1);
  Share duplicate;
  Share corrupt;            // one byte changed
  base::Duration delay{};   // of every datagram
  base::Duration jitter{};  // additional random delay of up to this, drawn for each datagram
  std::uint64_t seed = 1;

  bool operator==(const FaultPlan&) const = default;

  /// Parses a plan. An error names the word and the right form. The empty text is the plan without faults.
  static Result<FaultPlan> parse(std::string_view text);
  /// Prints the differences from the plan without faults; the text parses to an equal plan.
  std::string to_string() const;
  bool has_faults() const noexcept;
};

}  // namespace fairlead::path
