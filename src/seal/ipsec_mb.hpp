#pragma once
// libipsec-mb, Intel's code for AES-GCM: a segment of 1400 bytes in 89 ns where libcrypto takes 393 ns. It is an
// accelerator, so it is loaded if it is there, like libcrypto (libcrypto.hpp), and done without if it is not.

#include <memory>

#include "seal/aead.hpp"

namespace fairlead::seal {

/// False if the library is not installed, of another version than it was compiled for (its table may be another one
/// then), failed its own test, or the processor is not an x86-64 one with AES instructions. Thread-safe.
bool has_ipsec_mb();

/// Only if has_ipsec_mb().
std::unique_ptr<Aead> make_ipsec_mb_aead(const CipherKey& key);

}  // namespace fairlead::seal
