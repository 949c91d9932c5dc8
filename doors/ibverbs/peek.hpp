#pragma once
// A look at a number in an object that another thread may be destroying, or making anew in its place: any value that
// was there, checked by other means afterwards. No race to the thread sanitizer.

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
