#pragma once
// What a test takes from the environment.

#include <cstdint>
#include <cstdlib>

namespace fairlead::tests {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace fairlead::tests
