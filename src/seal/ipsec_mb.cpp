#include "seal/ipsec_mb.hpp"

#include <dlfcn.h>

#include <cstdint>

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

}  // namespace

const IMB_MGR* ipsec_mb() {
  static const IMB_MGR* const kTable = load();  // for as long as the process lives
  return kTable;
}

}  // namespace fairlead::seal
