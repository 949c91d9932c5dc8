#pragma once
// What the thread sanitizer cannot see by itself: memory mapped at two addresses of one process, as in the tests of
// shared memory. What is released at one address is acquired at the other. Nothing in other builds.

namespace fairlead::base {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAIRLEAD_THREAD_SANITIZER
#endif
#endif

#ifdef FAIRLEAD_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
inline char across_mappings;
inline void released_across_mappings() noexcept {
  __tsan_release(&across_mappings);
}
inline void acquired_across_mappings() noexcept {
  __tsan_acquire(&across_mappings);
}
#else
inline void released_across_mappings() noexcept {}
inline void acquired_across_mappings() noexcept {}
#endif

}  // namespace fairlead::base
