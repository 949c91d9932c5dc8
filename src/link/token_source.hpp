#pragma once
// Numbers that nobody outside can guess from those already seen: SipHash-2-4 of a counter, keyed by the engine's secret
// seed. Tokens and initial sequences come from here; with a fixed seed a whole run replays.

#include <cstdint>

namespace fairlead::link {

class TokenSource {
 public:
  TokenSource(std::uint64_t seed, std::uint64_t epoch) : key0_(seed), key1_(~seed ^ epoch) {}
  std::uint64_t next();

 private:
  std::uint64_t key0_, key1_;
  std::uint64_t counter_ = 0;
};

}  // namespace fairlead::link
