#pragma once
// Events that the machine took from the Core in one batch and has not delivered yet. The thread with the turn owns
// them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "engine/core.hpp"

namespace fairlead::net {

struct EndPointState;

class TakenEvents {
 public:
  static constexpr std::size_t kMost = 128;  // at least as many as one record can bring

  bool is_empty() const { return next_ == end_; }
  /// Returns whether the last batch was full: the Core may have more.
  bool was_full() const { return end_ == kMost; }
  /// Returns the space for the next batch. The caller must have delivered the previous one. fill() then sets the count.
  std::span<engine::Completion> room(std::size_t most) { return std::span(all_).first(std::min(most, kMost)); }
  std::span<engine::Completion> fill(std::size_t count) {
    next_ = 0;
    end_ = count;
    return std::span(all_).first(count);
  }
  const engine::Completion& next() { return all_[next_++]; }
  /// The senders of the batch, one for each event; null for those that are no message.
  std::span<EndPointState*> senders() { return std::span(senders_).first(end_); }
  /// The sender of the event that next() returned last.
  EndPointState* sender() const { return senders_[next_ - 1]; }

 private:
  std::array<engine::Completion, kMost> all_;
  std::array<EndPointState*, kMost> senders_;
  std::size_t next_ = 0, end_ = 0;
};

}  // namespace fairlead::net
