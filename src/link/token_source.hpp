#pragma once
// A generator whose numbers cannot be predicted from earlier ones: SipHash-2-4 of a counter, keyed by the engine's
// secret seed. It supplies tokens and initial sequences; with a fixed seed a whole run can be replayed.

#include <cstdint>

#include "base/sip_hash.hpp"

namespace fairlead::link {

class TokenSource {
 public:
  TokenSource(std::uint64_t seed, std::uint64_t epoch) : key_{seed, ~seed ^ epoch} {}
  std::uint64_t next();
  base::SipKey next_key() {
    const std::uint64_t low = next();
    return {low, next()};
  }
  /// How many numbers were drawn; a successor with the same seed draws none of them again.
  std::uint64_t drawn() const { return counter_; }
  void skip_to(std::uint64_t drawn) { counter_ = drawn; }
  std::uint64_t seed() const { return key_.low; }

 private:
  base::SipKey key_;
  std::uint64_t counter_ = 0;
};

}  // namespace fairlead::link
