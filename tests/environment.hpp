#pragma once
// What a test takes from the environment.

#include <cstdint>
#include <cstdlib>

namespace fairlead::tests {

/// What `./dev test --full` sets: the largest models, every seed and every failing call, not a share of them.
inline bool is_full_run() {
  return std::getenv("FAIRLEAD_TEST_FULL") != nullptr;
}

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Of many things, numbered, that a full run does all: whether this run does this one. One in `share`, and with another
/// commit others.
inline bool is_drawn(std::uint64_t number, std::uint64_t share) {
  return is_full_run() || (number_from("FAIRLEAD_TEST_SIM_SEED", 0) + number) % share == 0;
}

}  // namespace fairlead::tests
