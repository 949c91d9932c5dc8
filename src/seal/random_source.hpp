#pragma once
// Where keys come from: the kernel's randomness, or, for simulations and tests, a seed that replays.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fairlead::seal {

class RandomSource {
 public:
  static RandomSource of_kernel() { return RandomSource(); }
  /// Never for keys that shall be secret.
  static RandomSource of_seed(std::uint64_t seed);

  void fill(std::span<std::byte> bytes);

 private:
  RandomSource() = default;

  std::optional<std::uint64_t> seed_;
  std::uint64_t counter_ = 0;
};

}  // namespace fairlead::seal
