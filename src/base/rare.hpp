#pragma once
// Rare branches that only the simulator switches on (FoundationDB calls it buggify). So events of once a month in the
// field happen in each run there. Correct code stays correct whichever way a branch goes.
//
//   const std::size_t taken_max = base::rare("engine: takes one arrival") ? 1 : kArrivalsInPass;
//
// Outside the simulator this is one load and one branch. A run switches each place on or off as a whole, so that a
// place is frequent with some seeds and never occurs with others.

#include <cstdint>
#include <map>
#include <string_view>

namespace fairlead::base {

/// Decides from a seed which places are on in this run, and each time whether such a place takes its rare branch.
class RareBranches {
 public:
  explicit RareBranches(std::uint64_t seed) : seed_(seed), state_(seed) {}

  bool take(std::string_view place);

  /// How often a place was reached, and how often its rare branch was taken.
  struct Count {
    std::uint64_t met = 0, taken = 0;
  };
  const std::map<std::string_view, Count>& counts() const { return counts_; }

 private:
  static constexpr std::uint64_t kOnePlaceIn = 3;
  static constexpr std::uint64_t kOneTimeIn = 16;

  std::uint64_t seed_, state_;
  std::map<std::string_view, Count> counts_;
};

/// Null outside the simulator. Set before the first engine is made, and reset after the last one is destroyed.
inline constinit RareBranches* rare_branches = nullptr;

/// `place`: a string literal that describes the event.
inline bool rare(std::string_view place) {
  return rare_branches != nullptr && rare_branches->take(place);
}

}  // namespace fairlead::base
