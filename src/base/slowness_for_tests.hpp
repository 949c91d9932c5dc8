#pragma once
// How many times longer a test takes under a sanitizer. Tests that need no other thread and no foreign address do so
// many times fewer rounds there. Tests that need other threads divide by kThreadSlowness: the thread sanitizer finds a
// race in whichever round it is.

#include <cstdint>

namespace fairlead::base {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FAIRLEAD_IS_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAIRLEAD_IS_SANITIZED
#endif

#ifdef FAIRLEAD_IS_SANITIZED
inline constexpr std::uint64_t kSlowness = 8, kThreadSlowness = 4;
#else
inline constexpr std::uint64_t kSlowness = 1, kThreadSlowness = 1;
#endif

}  // namespace fairlead::base
