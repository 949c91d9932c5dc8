#pragma once
// Keys and limits with which a link seals its sessions (docs/seal.md). A link without them seals nothing; its cost is
// one test per received segment and one per hello.

#include <memory>
#include <vector>

#include "base/address_range.hpp"
#include "base/time.hpp"
#include "seal/aead.hpp"
#include "seal/keyring.hpp"
#include "seal/random_source.hpp"

namespace fairlead::link {

struct SealSettings {
  std::shared_ptr<const seal::Keyring> ring;  // never null
  std::vector<base::AddressRange> required;   // nothing unsealed is exchanged with these addresses
  seal::RandomSource random = seal::RandomSource::of_kernel();
  seal::AeadMaker maker = seal::best_aead_maker();

  // The keys are changed when they have sealed and opened this much, or are this old and still in use. If the peer does
  // not take part in time, the session ends (key_changes.hpp).
  static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 36;
  static constexpr base::Duration kAgeMax = std::chrono::hours(1);
  std::uint64_t bytes_max = kBytesMax;
  std::uint64_t segments_max = std::uint64_t{1} << 32;
  base::Duration age_max = kAgeMax;
};

}  // namespace fairlead::link
