#pragma once
// Events that were taken from the Core at once, counted, and not told yet. They belong to whoever has the turn.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "engine/core.hpp"

namespace fairlead::net {

class TakenEvents {
 public:
  static constexpr std::size_t kMost = 128;  // at least what comes in one record

  bool is_empty() const { return next_ == end_; }
  /// The Core may have more.
  bool was_full() const { return end_ == kMost; }
  /// Where the next ones go, when the ones before have been told; fill() tells how many they are.
  std::span<engine::Completion> room(std::size_t most) { return std::span(all_).first(std::min(most, kMost)); }
  std::span<engine::Completion> fill(std::size_t count) {
    next_ = 0;
    end_ = count;
    return std::span(all_).first(count);
  }
  const engine::Completion& next() { return all_[next_++]; }

 private:
  std::array<engine::Completion, kMost> all_;
  std::size_t next_ = 0, end_ = 0;
};

}  // namespace fairlead::net
