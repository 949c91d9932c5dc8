#pragma once
// Processor hints for memory that two cores share. None changes the meaning of a program.

namespace fairlead::base {

/// Pause between two polls of a word that another core writes: polling again at once slows its write down.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// Fetches a cache line in exclusive state before a write. Any address is allowed.
inline void prefetch_for_write(const void* address) noexcept {
#if defined(__x86_64__)
  // The builtin would become a read prefetch when the compiler targets the base instruction set. Older processors
  // execute this one as a no-op.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1, 3);
#endif
}

}  // namespace fairlead::base
