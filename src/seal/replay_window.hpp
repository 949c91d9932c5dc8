#pragma once
// The replay window of one epoch: each segment number is accepted once, in any order, up to kReach behind the highest.
// Older numbers count as replayed. It holds twice the numbers of a window of 4096 segments, each resent or overtaken by
// 64 others.
//
// Numbers have 64 bits. A segment carries the lower 32; the upper ones follow from the highest number seen.

#include <array>
#include <cstddef>
#include <cstdint>

namespace fairlead::seal {

class ReplayWindow {
 public:
  static constexpr std::uint64_t kBits = 8192;
  static constexpr std::uint64_t kReach = kBits - 64;  // the highest number's word may not be full yet

  /// Returns the number with these lower 32 bits that is nearest to the next one expected.
  std::uint64_t complete(std::uint32_t low) const;

  bool is_new(std::uint64_t number) const;
  /// Call only for a number whose tag was right: a forged number must not move the window.
  void mark(std::uint64_t number);

  template <typename Archive>
  friend void fields(Archive& archive, ReplayWindow& window) {
    archive(window.end_);
    for (std::uint64_t& word : window.words_) archive(word);
  }

 private:
  static constexpr std::uint64_t kWords = kBits / 64;

  std::uint64_t& word(std::uint64_t number) { return words_[number / 64 % kWords]; }
  const std::uint64_t& word(std::uint64_t number) const { return words_[number / 64 % kWords]; }

  std::uint64_t end_ = 0;  // one more than the highest marked
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace fairlead::seal
