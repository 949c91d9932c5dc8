#pragma once
// AES-128-GCM with one key, for segments: the plaintext is gathered from pieces. Two implementations: libipsec-mb where
// it is installed and the processor has AES instructions, otherwise libcrypto. After construction there is no
// allocation and no system call.

#include <memory>
#include <span>

#include <sys/uio.h>

#include "seal/primitives.hpp"

namespace fairlead::seal {

using CipherKey = Secret<16>;

class Aead {
 public:
  virtual ~Aead() = default;

  /// Encrypts `plain` into `output`, and appends the tag.
  virtual void seal(const Nonce& nonce, Bytes associated, std::span<const iovec> plain, std::byte* output) = 0;
  /// Decrypts `sealed`, which ends with the tag; `output` takes kTagBytes less. Returns false if the tag is wrong; then
  /// `output` is undefined.
  [[nodiscard]] virtual bool open(const Nonce& nonce, Bytes associated, Bytes sealed, std::byte* output) = 0;
};

/// Makes an Aead of one implementation; call after load_libcrypto().
using AeadMaker = std::unique_ptr<Aead> (*)(const CipherKey& key);
std::unique_ptr<Aead> make_libcrypto_aead(const CipherKey& key);

/// Returns the fastest implementation available.
AeadMaker best_aead_maker();

}  // namespace fairlead::seal
