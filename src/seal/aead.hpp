#pragma once
// AES-128-GCM with one key, for segments: what is sealed is gathered from pieces, as the link has it. Two ways to
// compute the same: libipsec-mb, where it is installed and the processor has AES instructions, else libcrypto. No
// allocation and no system call after it is made.

#include <memory>
#include <span>

#include <sys/uio.h>

#include "seal/primitives.hpp"

namespace fairlead::seal {

using CipherKey = Secret<16>;

class Aead {
 public:
  virtual ~Aead() = default;

  /// `output`: as many bytes as are in `plain`, then the tag.
  virtual void seal(const Nonce& nonce, Bytes associated, std::span<const iovec> plain, std::byte* output) = 0;
  /// `sealed` ends with the tag, `output` has kTagBytes less. False: the tag is wrong, and `output` means nothing.
  [[nodiscard]] virtual bool open(const Nonce& nonce, Bytes associated, Bytes sealed, std::byte* output) = 0;
};

/// Makes one that computes in a certain way; after load_libcrypto().
using AeadMaker = std::unique_ptr<Aead> (*)(const CipherKey& key);
std::unique_ptr<Aead> make_libcrypto_aead(const CipherKey& key);

/// The best that there is here.
AeadMaker best_aead_maker();

}  // namespace fairlead::seal
