#pragma once
// The source of keys: the kernel's random numbers or, for simulations and tests, a seed that can be replayed.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace fairlead::seal {

class RandomSource {
 public:
  static RandomSource of_kernel() { return RandomSource(); }
  /// Never use it for keys that have to be secret.
  static RandomSource of_seed(std::uint64_t seed);

  void fill(std::span<std::byte> bytes);

 private:
  RandomSource() = default;

  std::optional<std::uint64_t> seed_;
  std::uint64_t counter_ = 0;
};

}  // namespace fairlead::seal
