#include "seal/epoch_keys.hpp"

#include <string_view>

namespace fairlead::seal {

namespace {

DirectionSecret secret_of(const Key& key) {
  constexpr std::string_view kLabel = "fairlead seal AES-128-GCM";
  DirectionSecret secret;
  derive({}, key.bytes(), std::as_bytes(std::span(kLabel)), secret.bytes());
  return secret;
}

}  // namespace

EpochKeys::Direction::Direction(const DirectionSecret& its, AeadMaker maker)
    : secret(its), aead(maker(CipherKey(secret.bytes().first<CipherKey::size()>()))) {}

Nonce EpochKeys::Direction::nonce(std::uint64_t number) const {
  Nonce nonce;
  std::ranges::copy(secret.bytes().last<kNonceBytes>(), nonce.begin());
  for (std::size_t i = 0; i < sizeof number; ++i)
    nonce[kNonceBytes - 1 - i] ^= static_cast<std::byte>(number >> (8 * i));
  return nonce;
}

EpochKeys::EpochKeys(const NoiseSymmetricState::Split& split, NoiseRole role, AeadMaker maker)
    : ours_(secret_of(role == NoiseRole::initiator ? split.initiator : split.responder), maker),
      theirs_(secret_of(role == NoiseRole::initiator ? split.responder : split.initiator), maker) {}

EpochKeys::EpochKeys(const EpochState& saved, AeadMaker maker)
    : ours_(saved.ours, maker),
      theirs_(saved.theirs, maker),
      next_number_(saved.next_number),
      opened_(saved.opened),
      bytes_(saved.bytes),
      window_(saved.window) {}

EpochState EpochKeys::save() const {
  return {.ours = ours_.secret,
          .theirs = theirs_.secret,
          .next_number = next_number_,
          .opened = opened_,
          .bytes = bytes_,
          .window = window_};
}

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
