#pragma once
// The receiver's half of the window: which sequences have arrived. In-order segments only move next(). The bitmap is
// allocated when the first segment arrives out of order, and freed when the peer falls quiet.

#include <cstdint>
#include <memory>

#include "wire/sequence.hpp"

namespace fairlead::link {

class ReceiveWindow {
 public:
  enum class Verdict : std::uint8_t { fresh, duplicate, too_old, too_new };

  /// Empties the window; `first` is expected next. Capacity: a power of two, at least 64.
  void open(wire::Sequence first, std::uint32_t capacity);

  wire::Sequence next() const { return next_; }
  std::uint32_t ahead() const { return ahead_; }  // arrived beyond a gap
  bool has_bitmap() const { return bits_ != nullptr; }

  Verdict judge(wire::Sequence sequence) const;
  /// Allocates the bitmap if necessary, so that mark() does not have to.
  void reserve(wire::Sequence sequence);
  /// Marks a fresh sequence as arrived.
  void mark(wire::Sequence sequence);

  /// Bit i: sequence next() + 1 + 64 * word + i has arrived.
  std::uint64_t bitmap(std::uint32_t word) const;
  /// Returns how many such words may have a bit.
  std::uint32_t bitmap_words() const;

  /// Calls visit(sequence) for each sequence that has arrived beyond a gap.
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
  wire::Sequence highest_;  // highest sequence that arrived beyond a gap
  std::uint32_t capacity_ = 0;
  std::uint32_t ahead_ = 0;
  // indexed by sequence modulo capacity; only bits in (next, next + capacity) are set
  std::unique_ptr<std::uint64_t[]> bits_;
};

}  // namespace fairlead::link
