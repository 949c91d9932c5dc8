#pragma once
// Orders that the thread sanitizer cannot see, between two engines of one process in tests: memory mapped at two
// addresses, and datagrams. A sender releases, a receiver acquires. Does nothing in other builds.

namespace fairlead::base {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAIRLEAD_THREAD_SANITIZER
#endif
#endif

#ifdef FAIRLEAD_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
inline char unseen;
inline void release_unseen() noexcept {
  __tsan_release(&unseen);
}
inline void acquire_unseen() noexcept {
  __tsan_acquire(&unseen);
}
#else
inline void release_unseen() noexcept {}
inline void acquire_unseen() noexcept {}
#endif

}  // namespace fairlead::base
