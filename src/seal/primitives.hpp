#pragma once
// The primitives of the handshake, by libcrypto: X25519, SHA-256, HKDF, ChaCha20-Poly1305. Call load_libcrypto() first.
// They throw std::bad_alloc if libcrypto has no memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "seal/secret.hpp"

namespace fairlead::seal {

using Bytes = std::span<const std::byte>;
using Hash = std::array<std::byte, 32>;

inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kNonceBytes = 12;
using Nonce = std::array<std::byte, kNonceBytes>;

PublicKey public_key_of(const Key& secret);

/// Returns false if the peer's key is one of the few that make every shared secret zero.
[[nodiscard]] bool agree(const Key& secret, const PublicKey& theirs, Key& shared);

/// Hashes the concatenation of the parts.
Hash sha256(std::initializer_list<Bytes> parts);

/// HKDF with SHA-256 (RFC 5869).
void derive(Bytes salt, Bytes input, Bytes info, std::span<std::byte> output);

/// ChaCha20-Poly1305 (RFC 8439): `output` has kTagBytes more than `plain`.
void chacha_seal(const Key& key, const Nonce& nonce, Bytes associated, Bytes plain, std::byte* output);

/// Returns false if the tag is wrong; then `output` is undefined. It has kTagBytes less than `sealed`.
[[nodiscard]] bool chacha_open(const Key& key, const Nonce& nonce, Bytes associated, Bytes sealed, std::byte* output);

/// Compares in constant time.
bool is_equal(Bytes a, Bytes b);

}  // namespace fairlead::seal
