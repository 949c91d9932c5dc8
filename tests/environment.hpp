#pragma once
// Settings of tests in the environment.

#include <cstdint>
#include <cstdlib>

namespace fairlead::tests {

/// `./dev test --full` sets it: tests run the largest models, all seeds and all failing calls, not a share of them.
inline bool is_full_run() {
  return std::getenv("FAIRLEAD_TEST_FULL") != nullptr;
}

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Whether this run executes case `number`. A full run executes all cases, other runs one in `share`, selected by the
/// commit.
inline bool is_drawn(std::uint64_t number, std::uint64_t share) {
  return is_full_run() || (number_from("FAIRLEAD_TEST_SIM_SEED", 0) + number) % share == 0;
}

}  // namespace fairlead::tests
