#include "seal/noise_symmetric_state.hpp"

#include <algorithm>
#include <cstring>

#include "base/ensure.hpp"

namespace fairlead::seal {

NoiseSymmetricState::NoiseSymmetricState(std::string_view protocol_name) {
  const Bytes name = std::as_bytes(std::span(protocol_name));
  hash_ = {};
  if (name.size() <= hash_.size()) {
    std::ranges::copy(name, hash_.begin());
  } else {
    hash_ = sha256({name});
  }
  chaining_key_ = Key(hash_);
}

void NoiseSymmetricState::mix_hash(Bytes bytes) {
  hash_ = sha256({hash_, bytes});
}

void NoiseSymmetricState::mix_key(Bytes input) {
  Secret<64> output;
  derive(chaining_key_.bytes(), input, {}, output.bytes());
  chaining_key_ = Key(output.bytes().first<32>());
  key_ = Key(output.bytes().last<32>());
  has_key_ = true;
  number_ = 0;
}

void NoiseSymmetricState::mix_key_and_hash(Bytes input) {
  Secret<96> output;
  derive(chaining_key_.bytes(), input, {}, output.bytes());
  chaining_key_ = Key(output.bytes().first<32>());
  mix_hash(output.bytes().subspan<32, 32>());
  key_ = Key(output.bytes().last<32>());
  has_key_ = true;
  number_ = 0;
}

Nonce NoiseSymmetricState::next_nonce() {
  Nonce nonce{};
  std::memcpy(nonce.data() + 4, &number_, sizeof number_);  // little-endian for ChaChaPoly
  ++number_;
  return nonce;
}

void NoiseSymmetricState::encrypt_and_hash(Bytes plain, std::byte* output) {
  ENSURE(has_key_, "a Noise message without a key");
  chacha_seal(key_, next_nonce(), hash_, plain, output);
  mix_hash({output, plain.size() + kTagBytes});
}

bool NoiseSymmetricState::decrypt_and_hash(Bytes sealed, std::byte* output) {
  ENSURE(has_key_, "a Noise message without a key");
  if (!chacha_open(key_, next_nonce(), hash_, sealed, output)) return false;
  mix_hash(sealed);
  return true;
}

NoiseSymmetricState::Split NoiseSymmetricState::split() const {
  Secret<64> output;
  derive(chaining_key_.bytes(), {}, {}, output.bytes());
  return {Key(output.bytes().first<32>()), Key(output.bytes().last<32>())};
}

}  // namespace fairlead::seal
