#pragma once
// Returns the first of a range of unused seeds: from FAIRLEAD_TEST_SIM_SEED, or from the clock. `./dev test` derives it
// from the commit. Each commit thus has its own seeds, and repeated runs of one commit use the same.

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

namespace fairlead::sim {

inline std::uint64_t first_fresh_seed(std::uint64_t count) {
  const char* const wish = std::getenv("FAIRLEAD_TEST_SIM_SEED");
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::uint64_t first =
      wish != nullptr ? std::strtoull(wish, nullptr, 10)
                      : static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  fmt::print("seeds {} to {}; again: FAIRLEAD_TEST_SIM_SEED={}\n", first, first + count - 1, first);
  return first;
}

}  // namespace fairlead::sim
