#include "seal/libcrypto.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "base/ensure.hpp"

namespace fairlead::seal {
namespace {

constexpr const char* kName = "libcrypto.so.3";

struct Loaded {
  Libcrypto table;
  std::string missing;  // what was not found; empty if all was found

  Loaded() {
    void* library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      missing = kName;
      return;
    }
#define F(name)                                                                 \
  table.name = reinterpret_cast<decltype(table.name)>(::dlsym(library, #name)); \
  if (table.name == nullptr && missing.empty()) missing = fmt::format("{} in {}", #name, kName);
    FAIRLEAD_LIBCRYPTO(F)
#undef F
    if (!missing.empty()) return;
    table.context = table.OSSL_LIB_CTX_new();
    table.sha256 = table.EVP_MD_fetch(table.context, "SHA256", nullptr);
    table.hkdf = table.EVP_KDF_fetch(table.context, "HKDF", nullptr);
    table.chacha20_poly1305 = table.EVP_CIPHER_fetch(table.context, "ChaCha20-Poly1305", nullptr);
    table.aes_128_gcm = table.EVP_CIPHER_fetch(table.context, "AES-128-GCM", nullptr);
    const bool has_all = table.context != nullptr && table.sha256 != nullptr && table.hkdf != nullptr &&
                         table.chacha20_poly1305 != nullptr && table.aes_128_gcm != nullptr;
    if (!has_all) missing = fmt::format("X25519, ChaCha20-Poly1305, AES-128-GCM, SHA-256 or HKDF in {}", kName);
  }
};

const Loaded& loaded() {
  static const Loaded once;  // the library is never unloaded
  return once;
}

}  // namespace

Result<> load_libcrypto() {
  if (loaded().missing.empty()) return {};
  return std::unexpected(Error{
      Status::not_supported, 0,
      fmt::format("sealing needs {}, which is not there: install OpenSSL 3 (Debian: libssl3)", loaded().missing)});
}

const Libcrypto& libcrypto() {
  ENSURE(loaded().missing.empty(), "libcrypto is used but was not loaded: {}", loaded().missing);
  return loaded().table;
}

}  // namespace fairlead::seal
