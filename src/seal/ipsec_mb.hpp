#pragma once
// libipsec-mb, Intel's AES-GCM: a segment of 1400 bytes takes 89 ns instead of libcrypto's 393 ns. It is optional, and
// loaded at run time if it is installed, like libcrypto (libcrypto.hpp).

#include <memory>

#include "seal/aead.hpp"

namespace fairlead::seal {

/// Returns false if the library is not installed, failed its self-test, or has another version than at compile time
/// (its table may differ then). Also if the processor lacks AES instructions or is not x86-64. Thread-safe.
bool has_ipsec_mb();

/// Requires has_ipsec_mb().
std::unique_ptr<Aead> make_ipsec_mb_aead(const CipherKey& key);

}  // namespace fairlead::seal
