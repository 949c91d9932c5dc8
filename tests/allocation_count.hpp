#pragma once
// Counts this program's allocations: from the heap (malloc and its family, all forms of new) and from the kernel (mmap,
// mremap). Exactly one source file of a program includes this header. It replaces the C library's allocation functions
// by name. Sanitizer builds install a hook in the sanitizer's allocator instead.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FAIRLEAD_HAS_HOOKS
#endif
#endif

namespace fairlead::tests {

inline std::atomic<std::uint64_t> allocations{0};

inline void count_allocation() {
  allocations.fetch_add(1, std::memory_order_relaxed);
}
inline std::uint64_t allocation_count() {
  return allocations.load(std::memory_order_relaxed);
}

}  // namespace fairlead::tests

// NOLINTBEGIN(bugprone-reserved-identifier)
#ifdef FAIRLEAD_HAS_HOOKS
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                                         void (*free_hook)(const volatile void*));
[[maybe_unused]] const int is_installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { fairlead::tests::count_allocation(); }, [](const volatile void*) {});
#else
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
  fairlead::tests::count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) noexcept {
  fairlead::tests::count_allocation();
  return __libc_calloc(number, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  fairlead::tests::count_allocation();
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  fairlead::tests::count_allocation();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  fairlead::tests::count_allocation();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  fairlead::tests::count_allocation();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#endif

// Counts mappings made by the library and by this program. Mappings that the C library makes are counted as malloc().
extern "C" {
void* mmap(void* at, std::size_t bytes, int rights, int flags, int file, off_t offset) noexcept {
  fairlead::tests::count_allocation();
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, rights, flags, file, offset));
}
void* mremap(void* memory, std::size_t before, std::size_t after, int flags, ...) noexcept {
  fairlead::tests::count_allocation();
  va_list more;
  va_start(more, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  return reinterpret_cast<void*>(::syscall(SYS_mremap, memory, before, after, flags, to));
}
}
// NOLINTEND(bugprone-reserved-identifier)
