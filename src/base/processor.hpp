#pragma once
// Hints to the processor for memory that two cores share. None of them changes what a program means.

namespace fairlead::base {

/// Between two looks at a word that another core writes: looking again at once makes its write slower.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// Asks for a line in the state that a write needs, before the write. Any address is allowed.
inline void prefetch_for_write(const void* address) noexcept {
#if defined(__x86_64__)
  // The builtin would fall back to a read prefetch where the compiler targets the base instruction set; older
  // processors take this one as a no-op.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1, 3);
#endif
}

}  // namespace fairlead::base
