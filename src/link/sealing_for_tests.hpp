#pragma once
// Keys for worlds of sealed links. Each end's secret follows from its number, so all keys are known.

#include <algorithm>
#include <memory>
#include <vector>

#include "link/world_for_tests.hpp"
#include "seal/libcrypto.hpp"
#include "seal/primitives.hpp"

namespace fairlead::link::testing {

inline seal::Key secret(int value) {
  seal::Key key;
  std::ranges::fill(key.bytes(), static_cast<std::byte>(value));
  return key;
}

inline std::vector<seal::Key> secrets(std::vector<int> values) {
  std::vector<seal::Key> keys;
  for (const int value : values) keys.push_back(secret(value));
  return keys;
}

inline std::shared_ptr<const seal::Keyring> psk_ring(std::vector<int> values) {
  EXPECT_TRUE(seal::load_libcrypto());
  return std::make_shared<const seal::Keyring>(seal::Keyring::of_secrets(secrets(std::move(values))));
}

/// A known peer: the public key of secret `value` at 10.0.0.(end + 1), the addresses of World.
struct Pin {
  std::size_t end = 0;
  int value = 0;
};
inline std::shared_ptr<const seal::Keyring> static_ring(std::vector<int> own, const std::vector<Pin>& known) {
  EXPECT_TRUE(seal::load_libcrypto());
  seal::KnownPeers peers;
  for (const Pin& pin : known) {
    peers.add({*base::AddressRange::parse("10.0.0." + std::to_string(pin.end + 1))},
              seal::public_key_of(secret(pin.value)));
  }
  return std::make_shared<const seal::Keyring>(seal::Keyring::of_static_keys(secrets(std::move(own)), peers));
}

inline SealSettings sealing_with(std::shared_ptr<const seal::Keyring> ring, std::uint64_t seed,
                                 std::vector<base::AddressRange> required = {base::AddressRange::all()}) {
  return {.ring = std::move(ring),
          .required = std::move(required),
          .random = seal::RandomSource::of_seed(seed),
          .maker = seal::best_aead_maker()};
}

/// All ends share one secret.
inline World::Sealing all_with_psk(std::uint64_t seed) {
  return [ring = psk_ring({1}), seed](std::size_t end) { return sealing_with(ring, seed + end); };
}
/// Each end knows the public keys of all.
inline World::Sealing all_with_static_keys(std::uint64_t seed, std::size_t count = 2) {
  return [seed, count](std::size_t end) {
    std::vector<Pin> pins;
    for (std::size_t other = 0; other < count; ++other) pins.push_back({other, static_cast<int>(other + 1)});
    return sealing_with(static_ring({static_cast<int>(end + 1)}, pins), seed + end);
  };
}

}  // namespace fairlead::link::testing
