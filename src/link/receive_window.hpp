#pragma once
// The receiver's half of the window: which sequences have arrived. In order nothing but next() moves; the bitmap is
// made when the first segment comes ahead of its turn and given back when the peer falls quiet.

#include <cstdint>
#include <memory>

#include "wire/sequence.hpp"

namespace fairlead::link {

class ReceiveWindow {
 public:
  enum class Verdict : std::uint8_t { fresh, duplicate, too_old, too_new };

  /// Empty, the next one expected is `first`. Capacity: a power of two, at least 64.
  void open(wire::Sequence first, std::uint32_t capacity);

  wire::Sequence next() const { return next_; }
  std::uint32_t ahead() const { return ahead_; }  // arrived beyond a gap
  bool has_bitmap() const { return bits_ != nullptr; }

  Verdict judge(wire::Sequence sequence) const;
  /// Before mark(), so that it needs no memory.
  void reserve(wire::Sequence sequence);
  /// Notes the arrival of a fresh one.
  void mark(wire::Sequence sequence);

  /// Bit i: next() + 1 + 64 * word + i has arrived.
  std::uint64_t bitmap(std::uint32_t word) const;
  /// How many such words have a bit.
  std::uint32_t bitmap_words() const;

  /// Calls visit(sequence) for each that has arrived beyond a gap.
  template <typename Visit>
  void for_each_ahead(Visit&& visit) const {
    std::uint32_t left = ahead_;
    for (wire::Sequence sequence = next_; left != 0; ++sequence) {
      if (!has(sequence)) continue;
      visit(sequence);
      --left;
    }
  }

  void release_bitmap();

 private:
  bool has(wire::Sequence sequence) const;

  wire::Sequence next_;
  wire::Sequence highest_;  // of those that arrived ahead
  std::uint32_t capacity_ = 0;
  std::uint32_t ahead_ = 0;
  std::unique_ptr<std::uint64_t[]> bits_;  // by sequence modulo capacity; all zero but for (next, next + capacity)
};

}  // namespace fairlead::link
