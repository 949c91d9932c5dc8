#include "seal/primitives.hpp"

#include <memory>
#include <new>

#include "seal/libcrypto.hpp"

namespace fairlead::seal {
namespace {

const unsigned char* raw(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}

/// With the arguments used here libcrypto fails only for want of memory.
void must(bool is_done) {
  if (is_done) return;
  libcrypto().ERR_clear_error();
  throw std::bad_alloc();
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { libcrypto().EVP_PKEY_free(key); }
};
struct FreeKeyContext {
  void operator()(EVP_PKEY_CTX* context) const { libcrypto().EVP_PKEY_CTX_free(context); }
};
struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { libcrypto().EVP_MD_CTX_free(context); }
};
struct FreeDerivation {
  void operator()(EVP_KDF_CTX* context) const { libcrypto().EVP_KDF_CTX_free(context); }
};
struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { libcrypto().EVP_CIPHER_CTX_free(context); }
};
using PrivateKeyObject = std::unique_ptr<EVP_PKEY, FreeKey>;

PrivateKeyObject private_key(const Key& secret) {
  const Libcrypto& lib = libcrypto();
  PrivateKeyObject key(
      lib.EVP_PKEY_new_raw_private_key_ex(lib.context, "X25519", nullptr, secret.raw(), secret.size()));
  must(key != nullptr);
  return key;
}

int length_of(Bytes bytes) {
  return static_cast<int>(bytes.size());
}

OSSL_PARAM parameter(const char* name, Bytes bytes) {
  // libcrypto only reads, although its argument is not const. It refuses a null pointer even for an empty value.
  static std::byte none{};
  std::byte* const data = bytes.empty() ? &none : const_cast<std::byte*>(bytes.data());
  return libcrypto().OSSL_PARAM_construct_octet_string(name, data, bytes.size());
}

}  // namespace

PublicKey public_key_of(const Key& secret) {
  PublicKey key;
  std::size_t length = key.size();
  must(libcrypto().EVP_PKEY_get_raw_public_key(private_key(secret).get(), raw(key.data()), &length) == 1);
  return key;
}

bool agree(const Key& secret, const PublicKey& theirs, Key& shared) {
  const Libcrypto& lib = libcrypto();
  const PrivateKeyObject own = private_key(secret);
  const PrivateKeyObject other(
      lib.EVP_PKEY_new_raw_public_key_ex(lib.context, "X25519", nullptr, raw(theirs), theirs.size()));
  const std::unique_ptr<EVP_PKEY_CTX, FreeKeyContext> context(
      lib.EVP_PKEY_CTX_new_from_pkey(lib.context, own.get(), nullptr));
  must(other != nullptr && context != nullptr);
  must(lib.EVP_PKEY_derive_init(context.get()) == 1);
  std::size_t length = shared.size();
  must(lib.EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1);
  const bool is_agreed = lib.EVP_PKEY_derive(context.get(), shared.raw(), &length) == 1 && length == shared.size();
  if (!is_agreed) lib.ERR_clear_error();
  return is_agreed;
}

Hash sha256(std::initializer_list<Bytes> parts) {
  const Libcrypto& lib = libcrypto();
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(lib.EVP_MD_CTX_new());
  must(context != nullptr);
  must(lib.EVP_DigestInit_ex2(context.get(), lib.sha256, nullptr) == 1);
  for (const Bytes part : parts) must(lib.EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1);
  Hash hash;
  must(lib.EVP_DigestFinal_ex(context.get(), raw(hash.data()), nullptr) == 1);
  return hash;
}

void derive(Bytes salt, Bytes input, Bytes info, std::span<std::byte> output) {
  const Libcrypto& lib = libcrypto();
  const std::unique_ptr<EVP_KDF_CTX, FreeDerivation> context(lib.EVP_KDF_CTX_new(lib.hkdf));
  must(context != nullptr);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      lib.OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      parameter(OSSL_KDF_PARAM_SALT, salt),
      parameter(OSSL_KDF_PARAM_KEY, input),
      parameter(OSSL_KDF_PARAM_INFO, info),
      lib.OSSL_PARAM_construct_end(),
  };
  must(lib.EVP_KDF_derive(context.get(), raw(output.data()), output.size(), parameters) == 1);
}

void chacha_seal(const Key& key, const Nonce& nonce, Bytes associated, Bytes plain, std::byte* output) {
  const Libcrypto& lib = libcrypto();
  const std::unique_ptr<EVP_CIPHER_CTX, FreeCipher> context(lib.EVP_CIPHER_CTX_new());
  must(context != nullptr);
  EVP_CIPHER_CTX* const cipher = context.get();
  int length = 0;
  must(lib.EVP_EncryptInit_ex2(cipher, lib.chacha20_poly1305, key.raw(), raw(nonce), nullptr) == 1);
  must(lib.EVP_EncryptUpdate(cipher, nullptr, &length, raw(associated), length_of(associated)) == 1);
  must(lib.EVP_EncryptUpdate(cipher, raw(output), &length, raw(plain), length_of(plain)) == 1);
  must(lib.EVP_EncryptFinal_ex(cipher, raw(output) + plain.size(), &length) == 1);
  must(lib.EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, kTagBytes, output + plain.size()) == 1);
}

bool chacha_open(const Key& key, const Nonce& nonce, Bytes associated, Bytes sealed, std::byte* output) {
  if (sealed.size() < kTagBytes) return false;
  const Bytes body = sealed.first(sealed.size() - kTagBytes);
  std::array<std::byte, kTagBytes> tag;
  std::ranges::copy(sealed.last(kTagBytes), tag.begin());
  const Libcrypto& lib = libcrypto();
  const std::unique_ptr<EVP_CIPHER_CTX, FreeCipher> context(lib.EVP_CIPHER_CTX_new());
  must(context != nullptr);
  EVP_CIPHER_CTX* const cipher = context.get();
  int length = 0;
  must(lib.EVP_DecryptInit_ex2(cipher, lib.chacha20_poly1305, key.raw(), raw(nonce), nullptr) == 1);
  must(lib.EVP_DecryptUpdate(cipher, nullptr, &length, raw(associated), length_of(associated)) == 1);
  must(lib.EVP_DecryptUpdate(cipher, raw(output), &length, raw(body), length_of(body)) == 1);
  must(lib.EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1);
  std::array<unsigned char, kTagBytes> rest;  // a stream cipher leaves no rest
  return lib.EVP_DecryptFinal_ex(cipher, rest.data(), &length) == 1;
}

bool is_equal(Bytes a, Bytes b) {
  return a.size() == b.size() && libcrypto().CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace fairlead::seal
