#include "seal/epoch_keys.hpp"

#include <string_view>

namespace fairlead::seal {

EpochKeys::Direction::Direction(const Key& key, AeadMaker maker) {
  constexpr std::string_view kLabel = "fairlead seal AES-128-GCM";
  Secret<CipherKey::size() + kNonceBytes> output;
  derive({}, key.bytes(), std::as_bytes(std::span(kLabel)), output.bytes());
  aead = maker(CipherKey(output.bytes().first<CipherKey::size()>()));
  start = Secret<kNonceBytes>(output.bytes().last<kNonceBytes>());
}

Nonce EpochKeys::Direction::nonce(std::uint64_t number) const {
  Nonce nonce;
  std::ranges::copy(start.bytes(), nonce.begin());
  for (std::size_t i = 0; i < sizeof number; ++i)
    nonce[kNonceBytes - 1 - i] ^= static_cast<std::byte>(number >> (8 * i));
  return nonce;
}

EpochKeys::EpochKeys(const NoiseSymmetricState::Split& split, NoiseRole role, AeadMaker maker)
    : ours_(role == NoiseRole::initiator ? split.initiator : split.responder, maker),
      theirs_(role == NoiseRole::initiator ? split.responder : split.initiator, maker) {}

void EpochKeys::seal(std::uint64_t number, Bytes associated, std::span<const iovec> plain, std::byte* output) {
  ours_.aead->seal(ours_.nonce(number), associated, plain, output);
  for (const iovec& piece : plain) bytes_ += piece.iov_len;
}

Opened EpochKeys::open(std::uint32_t number_low, Bytes associated, Bytes sealed, std::byte* output) {
  const std::uint64_t number = window_.complete(number_low);
  if (!window_.is_new(number)) return Opened::replayed;
  if (!theirs_.aead->open(theirs_.nonce(number), associated, sealed, output)) return Opened::bad_tag;
  window_.mark(number);
  ++opened_;
  bytes_ += sealed.size();
  return Opened::ok;
}

}  // namespace fairlead::seal
