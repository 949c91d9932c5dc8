#pragma once
// Encryption settings of fuzz worlds: all share one secret, and none accepts cleartext.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "link/link.hpp"
#include "seal/libcrypto.hpp"

namespace fairlead::fuzz {

/// Key changes come after a few segments.
inline link::SealSettings sealing_of(std::uint64_t seed) {
  if (!seal::load_libcrypto()) std::abort();
  seal::Key secret;
  std::ranges::fill(secret.bytes(), std::byte{5});
  std::vector<seal::Key> secrets;
  secrets.push_back(secret);
  return {.ring = std::make_shared<const seal::Keyring>(seal::Keyring::of_secrets(secrets)),
          .required = {base::AddressRange::all()},
          .random = seal::RandomSource::of_seed(seed),
          .bytes_max = 16'384};
}

}  // namespace fairlead::fuzz
