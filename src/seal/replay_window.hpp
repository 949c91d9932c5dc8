#pragma once
// Which packet numbers of one epoch have come: each is taken once, in any order, up to kReach behind the highest. What
// is older counts as come. A window of 4096 segments, each resent or overtaken by 64 others, fits in twice.
//
// The numbers have 64 bits, of which a segment carries the lower 32; the others follow from the highest seen.

#include <array>
#include <cstddef>
#include <cstdint>

namespace fairlead::seal {

class ReplayWindow {
 public:
  static constexpr std::uint64_t kBits = 8192;
  static constexpr std::uint64_t kReach = kBits - 64;  // the word that the highest one is in may not be full yet

  /// The number nearest to the next one expected with these lower 32 bits.
  std::uint64_t complete(std::uint32_t low) const;

  bool is_new(std::uint64_t number) const;
  /// Only of one whose tag was right: a forged number must not move the window.
  void mark(std::uint64_t number);

 private:
  static constexpr std::uint64_t kWords = kBits / 64;

  std::uint64_t& word(std::uint64_t number) { return words_[number / 64 % kWords]; }
  const std::uint64_t& word(std::uint64_t number) const { return words_[number / 64 % kWords]; }

  std::uint64_t end_ = 0;  // one more than the highest marked
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace fairlead::seal
