#pragma once
// The responder's place in the sequence of the other direction's requests. Sequences wrap; how many are over does not.

#include <cstdint>

#include "wire/pair_words.hpp"

namespace fairlead::qp {

class RequestTurn {
 public:
  using Sequence = wire::RequestSequence;
  static constexpr std::int32_t kDistanceMost = 1 << 24;  // requests between two that may be under way

  void begin(Sequence first) {
    next_ = first;
    over_ = 0;
  }
  /// The sequence of the next request.
  Sequence next() const { return next_; }
  /// The sequence of the last that is over.
  Sequence last() const { return next_ - 1; }
  /// It is over: executed, or given up.
  void pass() {
    ++next_;
    ++over_;
  }
  /// All before `sequence`.
  void pass_to(Sequence sequence) {
    over_ += count_between(next_, sequence);
    next_ = sequence;
  }
  /// How far beyond the next one; below zero: over.
  std::int32_t distance(Sequence sequence) const { return wire::distance(next_, sequence); }
  /// Whether a request of that sequence may come at all: nobody asks far ahead, or again what was never there.
  bool is_possible(Sequence sequence) const {
    if (sequence == next_) [[likely]]
      return true;
    const std::int32_t its = distance(sequence);
    return its < kDistanceMost && its > -kDistanceMost && (its >= 0 || count_between(sequence, next_) <= over_);
  }

 private:
  Sequence next_;
  std::uint64_t over_ = 0;  // since the beginning
};

}  // namespace fairlead::qp
