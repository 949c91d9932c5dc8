#pragma once
// What a link seals its sessions with (docs/seal.md). Without them it seals none, and pays for it by one look at a
// session's segment and one at a hello.

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
  std::vector<base::AddressRange> required;   // with these nothing unsealed is exchanged
  seal::RandomSource random = seal::RandomSource::of_kernel();
  seal::AeadMaker maker = seal::best_aead_maker();

  // New keys are made when the old ones have sealed and opened so much, or are so old and still in use. If the peer
  // does not make them with us in time, the session ends (key_changes.hpp).
  static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 36;
  static constexpr base::Duration kAgeMax = std::chrono::hours(1);
  std::uint64_t bytes_max = kBytesMax;
  std::uint64_t segments_max = std::uint64_t{1} << 32;
  base::Duration age_max = kAgeMax;
};

}  // namespace fairlead::link
