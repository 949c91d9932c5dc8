#pragma once
// OpenSSL's libcrypto, loaded when the first thing is to be sealed. A program that seals nothing does not need it, and
// the distribution keeps it up to date (docs/building.md). Its functions keep their names. Everything is fetched from a
// library context of our own, so a program that uses OpenSSL itself finds its settings unchanged.

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <fairlead/error.hpp>

namespace fairlead::seal {

// clang-format off
#define FAIRLEAD_LIBCRYPTO(F)                                                                                         \
  F(OSSL_LIB_CTX_new) F(CRYPTO_memcmp) F(ERR_clear_error) F(EVP_MD_fetch) F(EVP_MD_CTX_new) F(EVP_MD_CTX_free)        \
  F(EVP_DigestInit_ex2) F(EVP_DigestUpdate) F(EVP_DigestFinal_ex) F(EVP_KDF_fetch) F(EVP_KDF_CTX_new)                 \
  F(EVP_KDF_CTX_free) F(EVP_KDF_derive) F(OSSL_PARAM_construct_utf8_string)                                           \
  F(OSSL_PARAM_construct_octet_string) F(OSSL_PARAM_construct_end) F(EVP_PKEY_new_raw_private_key_ex)                 \
  F(EVP_PKEY_new_raw_public_key_ex) F(EVP_PKEY_get_raw_public_key) F(EVP_PKEY_free)                                   \
  F(EVP_PKEY_CTX_new_from_pkey) F(EVP_PKEY_CTX_free) F(EVP_PKEY_derive_init) F(EVP_PKEY_derive_set_peer)              \
  F(EVP_PKEY_derive) F(EVP_CIPHER_fetch) F(EVP_CIPHER_CTX_new) F(EVP_CIPHER_CTX_free) F(EVP_CIPHER_CTX_ctrl)          \
  F(EVP_EncryptInit_ex2) F(EVP_EncryptUpdate) F(EVP_EncryptFinal_ex) F(EVP_DecryptInit_ex2)                           \
  F(EVP_DecryptUpdate) F(EVP_DecryptFinal_ex)
// clang-format on

struct Libcrypto {
#define F(name) decltype(&::name) name = nullptr;
  FAIRLEAD_LIBCRYPTO(F)
#undef F
  OSSL_LIB_CTX* context = nullptr;
  EVP_MD* sha256 = nullptr;
  EVP_KDF* hkdf = nullptr;
  EVP_CIPHER* chacha20_poly1305 = nullptr;
  EVP_CIPHER* aes_128_gcm = nullptr;
};

/// Loads the library once per process; the error names the missing package. Thread-safe.
Result<> load_libcrypto();

/// Requires that load_libcrypto() succeeded.
const Libcrypto& libcrypto();

}  // namespace fairlead::seal
