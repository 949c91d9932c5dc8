#pragma once
// The responder's place in the sequence of the other direction's requests. Sequences wrap; how many are over does not.

#include <cstdint>

namespace fairlead::qp {

class FlowTurn {
 public:
  static constexpr std::int32_t kDistanceMost = 1 << 24;  // requests between two that may be under way

  void begin(std::uint32_t first) {
    next_ = first;
    over_ = 0;
  }
  /// The sequence of the next request.
  std::uint32_t next() const { return next_; }
  /// It is over: executed, or given up.
  void pass() {
    ++next_;
    ++over_;
  }
  /// All before `sequence`.
  void pass_to(std::uint32_t sequence) {
    over_ += sequence - next_;
    next_ = sequence;
  }
  /// How far beyond the next one; below zero: over.
  std::int32_t distance(std::uint32_t sequence) const { return static_cast<std::int32_t>(sequence - next_); }
  /// Whether a request of that sequence may come at all: nobody asks far ahead, or again what was never there.
  bool is_possible(std::uint32_t sequence) const {
    const std::int32_t its = distance(sequence);
    return its < kDistanceMost && its > -kDistanceMost && (its >= 0 || next_ - sequence <= over_);
  }

 private:
  std::uint32_t next_ = 0;
  std::uint64_t over_ = 0;  // since the beginning
};

}  // namespace fairlead::qp
