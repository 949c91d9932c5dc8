#pragma once
// The nondeterministic choices of a run: which thread continues, and which store a load reads. Enumerates all runs
// depth first, or draws some from a seed.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace fairlead::tests {

class Choices {
 public:
  /// Enumerates all runs.
  Choices() = default;
  /// Draws `runs` runs.
  Choices(std::uint64_t seed, std::uint64_t runs) : random_(seed), runs_left_(runs) {}

  /// Returns a number in 0..count - 1. 0 is the usual case.
  std::size_t choose(std::size_t count) {
    if (count == 1) return 0;
    if (runs_left_ > 0) return random_() % count;
    if (next_ == taken_.size()) taken_.push_back({0, count});
    return taken_[next_++].index;
  }

  /// Ends the run. Returns whether there is another one.
  bool go_on() {
    if (runs_left_ > 0) return --runs_left_ > 0;
    next_ = 0;
    while (!taken_.empty() && taken_.back().index + 1 == taken_.back().count) taken_.pop_back();
    if (taken_.empty()) return false;
    ++taken_.back().index;
    return true;
  }

 private:
  struct Taken {
    std::size_t index, count;
  };

  std::vector<Taken> taken_;
  std::size_t next_ = 0;
  std::mt19937_64 random_;
  std::uint64_t runs_left_ = 0;
};

}  // namespace fairlead::tests
