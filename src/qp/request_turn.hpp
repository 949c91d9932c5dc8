#pragma once
// The responder's position in the sequence of requests. Sequences wrap; the number of finished requests does not.

#include <cstdint>

#include "wire/pair_words.hpp"

namespace fairlead::qp {

class RequestTurn {
 public:
  using Sequence = wire::RequestSequence;
  static constexpr std::int32_t kDistanceMost = 1 << 24;  // most requests between two in flight

  void begin(Sequence first) {
    next_ = first;
    over_ = 0;
  }
  /// The sequence of the next request.
  Sequence next() const { return next_; }
  /// The sequence of the last request that is finished.
  Sequence last() const { return next_ - 1; }
  /// Counts the next request as finished: executed, or given up.
  void pass() {
    ++next_;
    ++over_;
  }
  /// Counts all requests before `sequence` as finished.
  void pass_to(Sequence sequence) {
    over_ += count_between(next_, sequence);
    next_ = sequence;
  }
  /// Distance from the next request; negative if the request is finished.
  std::int32_t distance(Sequence sequence) const { return wire::distance(next_, sequence); }
  /// Returns whether an honest requester can send this sequence: it is not far ahead, and it is no repetition of a
  /// request that never existed.
  bool is_possible(Sequence sequence) const {
    if (sequence == next_) [[likely]]
      return true;
    const std::int32_t its = distance(sequence);
    return its < kDistanceMost && its > -kDistanceMost && (its >= 0 || count_between(sequence, next_) <= over_);
  }

  template <typename Archive>
  friend void fields(Archive& archive, RequestTurn& turn) {
    archive(turn.next_, turn.over_);
  }

 private:
  Sequence next_;
  std::uint64_t over_ = 0;  // finished requests since begin()
};

}  // namespace fairlead::qp
