#include "seal/aead.hpp"

#include <cstring>
#include <new>

#include "base/ensure.hpp"
#include "seal/ipsec_mb.hpp"
#include "seal/libcrypto.hpp"
#include "seal/octets.hpp"

namespace fairlead::seal {
namespace {

class LibcryptoAead final : public Aead {
 public:
  explicit LibcryptoAead(const CipherKey& key)
      : lib_(libcrypto()), sealer_(lib_.EVP_CIPHER_CTX_new()), opener_(lib_.EVP_CIPHER_CTX_new()) {
    const bool is_ready = sealer_ != nullptr && opener_ != nullptr &&
                          lib_.EVP_EncryptInit_ex2(sealer_, lib_.aes_128_gcm, key.raw(), nullptr, nullptr) == 1 &&
                          lib_.EVP_DecryptInit_ex2(opener_, lib_.aes_128_gcm, key.raw(), nullptr, nullptr) == 1;
    if (is_ready) return;
    free();
    lib_.ERR_clear_error();
    throw std::bad_alloc();
  }
  ~LibcryptoAead() override { free(); }
  LibcryptoAead(const LibcryptoAead&) = delete;
  LibcryptoAead& operator=(const LibcryptoAead&) = delete;

  void seal(const Nonce& nonce, Bytes associated, std::span<const iovec> plain, std::byte* output) override {
    int length = 0;
    bool is_good =
        lib_.EVP_EncryptInit_ex2(sealer_, nullptr, nullptr, octets(nonce), nullptr) == 1 &&
        lib_.EVP_EncryptUpdate(sealer_, nullptr, &length, octets(associated), static_cast<int>(associated.size())) == 1;
    for (const iovec& piece : plain) {
      if (piece.iov_len == 0) continue;
      is_good = is_good && lib_.EVP_EncryptUpdate(sealer_, octets(output), &length, octets(piece_bytes(piece)),
                                                  static_cast<int>(piece.iov_len)) == 1;
      output += piece.iov_len;
    }
    is_good = is_good && lib_.EVP_EncryptFinal_ex(sealer_, octets(output), &length) == 1 &&
              lib_.EVP_CIPHER_CTX_ctrl(sealer_, EVP_CTRL_AEAD_GET_TAG, kTagBytes, output) == 1;
    ENSURE(is_good, "libcrypto cannot seal");
  }

  bool open(const Nonce& nonce, Bytes associated, Bytes sealed, std::byte* output) override {
    if (sealed.size() < kTagBytes) return false;
    const Bytes body = sealed.first(sealed.size() - kTagBytes);
    std::array<std::byte, kTagBytes> tag;
    std::ranges::copy(sealed.last(kTagBytes), tag.begin());
    int length = 0;
    bool is_good =
        lib_.EVP_DecryptInit_ex2(opener_, nullptr, nullptr, octets(nonce), nullptr) == 1 &&
        lib_.EVP_DecryptUpdate(opener_, nullptr, &length, octets(associated), static_cast<int>(associated.size())) == 1;
    if (!body.empty()) {
      is_good = is_good && lib_.EVP_DecryptUpdate(opener_, octets(output), &length, octets(body),
                                                  static_cast<int>(body.size())) == 1;
    }
    std::array<unsigned char, kTagBytes> rest;  // GCM leaves no rest
    is_good = is_good && lib_.EVP_CIPHER_CTX_ctrl(opener_, EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1;
    ENSURE(is_good, "libcrypto cannot open");
    return lib_.EVP_DecryptFinal_ex(opener_, rest.data(), &length) == 1;
  }

 private:
  // libcrypto wipes what it frees.
  void free() {
    lib_.EVP_CIPHER_CTX_free(sealer_);
    lib_.EVP_CIPHER_CTX_free(opener_);
  }

  const Libcrypto& lib_;
  EVP_CIPHER_CTX* sealer_;
  EVP_CIPHER_CTX* opener_;
};

}  // namespace

std::unique_ptr<Aead> make_libcrypto_aead(const CipherKey& key) {
  return std::make_unique<LibcryptoAead>(key);
}

AeadMaker best_aead_maker() {
  return has_ipsec_mb() ? make_ipsec_mb_aead : make_libcrypto_aead;
}

}  // namespace fairlead::seal
