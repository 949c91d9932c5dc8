#pragma once
// Reads a number in an object that another thread may be destroying or replacing. The caller must verify the value by
// other means. ThreadSanitizer ignores this read.

#include <cstdint>

namespace fairlead::ibverbs {

#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
__attribute__((no_sanitize("thread"), disable_sanitizer_instrumentation))
#endif
#endif
inline std::uint32_t
peek(const std::uint32_t& number) {
  return *static_cast<const volatile std::uint32_t*>(&number);
}

}  // namespace fairlead::ibverbs
