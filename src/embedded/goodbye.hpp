#pragma once
// How often an engine that ends tells its peers so, and how long it pauses for their answers in between. Both are
// bounded, because a peer may stand still.

#include <chrono>

#include "base/time.hpp"

namespace fairlead::embedded {

class Goodbye {
 public:
  /// For an engine that ends: a user waits for that, so it takes half a millisecond, whatever the peers do.
  static constexpr Goodbye brief() { return {std::chrono::microseconds(100), 1, 5}; }
  /// For a rank that leaves its job: the other ranks may not run for a while, and must not take it for dead.
  static constexpr Goodbye patient() { return {std::chrono::microseconds(200), 2, 8}; }

  /// Returns whether to tell the peers once more that have not answered yet.
  constexpr bool has_round() const noexcept { return rounds_left_ > 0; }
  /// Begins a round. Returns how long to wait for answers after it.
  constexpr base::Duration next_pause() noexcept {
    const base::Duration pause = pause_;
    pause_ *= factor_;
    --rounds_left_;
    return pause;
  }

 private:
  constexpr Goodbye(base::Duration pause, int factor, int rounds)
      : pause_(pause), factor_(factor), rounds_left_(rounds) {}

  base::Duration pause_;
  int factor_;
  int rounds_left_;
};

}  // namespace fairlead::embedded
