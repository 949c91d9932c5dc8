#include "seal/ipsec_mb.hpp"

#include "base/ensure.hpp"

#if defined(__x86_64__)
#include <dlfcn.h>
#include <intel-ipsec-mb.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "seal/octets.hpp"

namespace fairlead::seal {
namespace {

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

const IMB_MGR* load() {
  void* library = ::dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto* const version = symbol<decltype(imb_get_version)>(library, "imb_get_version");
  auto* const allocate = symbol<decltype(alloc_mb_mgr)>(library, "alloc_mb_mgr");
  auto* const prepare = symbol<decltype(init_mb_mgr_auto)>(library, "init_mb_mgr_auto");
  if (version == nullptr || allocate == nullptr || prepare == nullptr) return nullptr;
  if (version() >> 8 != IMB_VERSION_NUM >> 8) return nullptr;
  IMB_MGR* table = allocate(0);
  if (table == nullptr) return nullptr;
  IMB_ARCH architecture = IMB_ARCH_NONE;
  prepare(table, &architecture);
  constexpr std::uint64_t kNeeded = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
  const bool has_failed_test =
      (table->features & IMB_FEATURE_SELF_TEST) != 0 && (table->features & IMB_FEATURE_SELF_TEST_PASS) == 0;
  const bool is_good = architecture != IMB_ARCH_NONE && architecture != IMB_ARCH_NOAESNI &&
                       (table->features & kNeeded) == kNeeded && !has_failed_test;
  return is_good ? table : nullptr;
}

const IMB_MGR* ipsec_mb() {
  static const IMB_MGR* const kTable = load();  // never unloaded
  return kTable;
}

class IpsecMbAead final : public Aead {
 public:
  explicit IpsecMbAead(const CipherKey& key) : table_(*ipsec_mb()) { table_.gcm128_pre(key.raw(), &key_); }
  ~IpsecMbAead() override {
    ::explicit_bzero(&key_, sizeof key_);
    ::explicit_bzero(&context_, sizeof context_);
  }

  void seal(const Nonce& nonce, Bytes associated, std::span<const iovec> plain, std::byte* output) override {
    if (plain.size() == 1) {
      const Bytes all = piece_bytes(plain[0]);
      table_.gcm128_enc(&key_, &context_, octets(output), octets(all), all.size(), octets(nonce), octets(associated),
                        associated.size(), octets(output + all.size()), kTagBytes);
      return;
    }
    table_.gcm128_init(&key_, &context_, octets(nonce), octets(associated), associated.size());
    for (const iovec& piece : plain) {
      if (piece.iov_len == 0) continue;
      table_.gcm128_enc_update(&key_, &context_, octets(output), octets(piece_bytes(piece)), piece.iov_len);
      output += piece.iov_len;
    }
    table_.gcm128_enc_finalize(&key_, &context_, octets(output), kTagBytes);
  }

  bool open(const Nonce& nonce, Bytes associated, Bytes sealed, std::byte* output) override {
    if (sealed.size() < kTagBytes) return false;
    const std::size_t size = sealed.size() - kTagBytes;
    std::array<std::byte, kTagBytes> tag;
    table_.gcm128_dec(&key_, &context_, octets(output), octets(sealed), size, octets(nonce), octets(associated),
                      associated.size(), octets(tag.data()), kTagBytes);
    return is_equal(tag, sealed.last(kTagBytes));
  }

 private:
  const IMB_MGR& table_;
  alignas(64) gcm_key_data key_;
  alignas(64) gcm_context_data context_;
};

}  // namespace

bool has_ipsec_mb() {
  return ipsec_mb() != nullptr;
}

std::unique_ptr<Aead> make_ipsec_mb_aead(const CipherKey& key) {
  ENSURE(has_ipsec_mb(), "libipsec-mb is not there");
  return std::make_unique<IpsecMbAead>(key);
}

}  // namespace fairlead::seal

#else  // the library is for x86-64 only
namespace fairlead::seal {

bool has_ipsec_mb() {
  return false;
}

std::unique_ptr<Aead> make_ipsec_mb_aead(const CipherKey&) {
  ENSURE(false, "libipsec-mb is not there");
  return nullptr;
}

}  // namespace fairlead::seal
#endif
