#pragma once
// The symmetric state of a Noise handshake (noiseprotocol.org, revision 34, section 5.2) with ChaChaPoly and SHA256:
// the chaining key, the handshake hash, and the current key. Patterns that send something before they have a key are
// not supported.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "seal/primitives.hpp"

namespace fairlead::seal {

class NoiseSymmetricState {
 public:
  explicit NoiseSymmetricState(std::string_view protocol_name);

  void mix_hash(Bytes bytes);
  void mix_key(Bytes input);
  void mix_key_and_hash(Bytes input);

  /// Appends kTagBytes.
  void encrypt_and_hash(Bytes plain, std::byte* output);
  [[nodiscard]] bool decrypt_and_hash(Bytes sealed, std::byte* output);

  /// Keys of both directions, the initiator's first, after the last message.
  struct Split {
    Key initiator, responder;
  };
  Split split() const;
  const Hash& hash() const { return hash_; }

 private:
  Nonce next_nonce();

  Key chaining_key_, key_;
  Hash hash_;
  std::uint64_t number_ = 0;
  bool has_key_ = false;
};

}  // namespace fairlead::seal
