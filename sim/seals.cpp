#include "sim/seals.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/ensure.hpp"
#include "seal/libcrypto.hpp"
#include "seal/primitives.hpp"
#include "sim/addresses.hpp"

namespace fairlead::sim {
namespace {

seal::Key key_of(std::uint32_t host) {
  seal::Key key;
  std::ranges::fill(key.bytes(), std::byte{1});
  key.bytes()[0] = static_cast<std::byte>(host);
  key.bytes()[1] = static_cast<std::byte>(host >> 8);
  return key;
}

seal::Keyring static_keys(std::uint32_t own, std::size_t hosts) {
  seal::KnownPeers known;
  for (std::uint32_t host = 0; host < hosts; ++host)
    known.add({*base::AddressRange::parse(address_of(host).ip_text())}, seal::public_key_of(key_of(host)));
  std::vector<seal::Key> keys;
  keys.push_back(key_of(own));
  return seal::Keyring::of_static_keys(std::move(keys), std::move(known));
}

seal::Keyring shared_secret() {
  std::vector<seal::Key> keys;
  keys.push_back(key_of(0));
  return seal::Keyring::of_secrets(std::move(keys));
}

/// Authenticates only the payload.
class HeaderlessAead final : public seal::Aead {
 public:
  explicit HeaderlessAead(const seal::CipherKey& key) : aead_(seal::best_aead_maker()(key)) {}

  void seal(const seal::Nonce& nonce, seal::Bytes, std::span<const iovec> plain, std::byte* output) override {
    aead_->seal(nonce, {}, plain, output);
  }
  bool open(const seal::Nonce& nonce, seal::Bytes, seal::Bytes sealed, std::byte* output) override {
    return aead_->open(nonce, {}, sealed, output);
  }

 private:
  std::unique_ptr<seal::Aead> aead_;
};

std::unique_ptr<seal::Aead> make_headerless_aead(const seal::CipherKey& key) {
  return std::make_unique<HeaderlessAead>(key);
}

}  // namespace

link::SealSettings with_one_secret(std::uint64_t epoch) {
  const auto loaded = seal::load_libcrypto();
  ENSURE(loaded.has_value(), "{}", loaded.error().message);
  return {.ring = std::make_shared<const seal::Keyring>(shared_secret()),
          .required = {base::AddressRange::all()},
          .random = seal::RandomSource::of_seed(~epoch)};
}

std::optional<link::SealSettings> seals_of(const Scenario& scenario, std::uint32_t host, std::uint64_t seed) {
  if (scenario.seals == Seals::none) return std::nullopt;
  const auto loaded = seal::load_libcrypto();
  ENSURE(loaded.has_value(), "{}", loaded.error().message);
  seal::Keyring ring =
      scenario.seals == Seals::shared_secret ? shared_secret() : static_keys(host, scenario.hosts.size());
  const bool forgets = scenario.sabotage == Sabotage::Kind::forgotten_header;
  return link::SealSettings{.ring = std::make_shared<const seal::Keyring>(std::move(ring)),
                            .required = {base::AddressRange::all()},
                            .random = seal::RandomSource::of_seed(seed),
                            .maker = forgets ? make_headerless_aead : seal::best_aead_maker()};
}

}  // namespace fairlead::sim
