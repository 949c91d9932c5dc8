#pragma once
// Replaces operator new so that chosen allocations fail. Exactly one source file of a program includes this header.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace fairlead::tests {

/// Numbers the allocations made while `is_watched` returns true, from 1. Those from `first` to `last` fail.
struct FailingMemory {
  bool (*is_watched)() = nullptr;
  std::uint64_t first = 0, last = 0;
  std::uint64_t asked = 0, failed = 0;

  bool fails() {
    if (is_watched == nullptr || !is_watched()) return false;
    ++asked;
    if (asked < first || asked > last) return false;
    ++failed;
    return true;
  }
};
inline FailingMemory failing_memory;

/// Lets allocations of libcrypto fail, too. False if libcrypto has allocated memory before.
inline bool watch_libcrypto() {
  using Allocate = void* (*)(std::size_t, const char*, int);
  using Reallocate = void* (*)(void*, std::size_t, const char*, int);
  using Free = void (*)(void*, const char*, int);
  void* const library = ::dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  const auto set = reinterpret_cast<int (*)(Allocate, Reallocate, Free)>(::dlsym(library, "CRYPTO_set_mem_functions"));
  return set != nullptr &&
         set([](std::size_t bytes, const char*, int) { return failing_memory.fails() ? nullptr : std::malloc(bytes); },
             [](void* old, std::size_t bytes, const char*, int) {
               return failing_memory.fails() ? nullptr : std::realloc(old, bytes);
             },
             [](void* memory, const char*, int) { std::free(memory); }) == 1;
}

}  // namespace fairlead::tests

// The array and sized forms call these.
void* operator new(std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return fairlead::tests::failing_memory.fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(std::size_t bytes) {
  void* const memory = ::operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& /*unused*/) noexcept {
  const auto step = static_cast<std::size_t>(alignment);
  return fairlead::tests::failing_memory.fails() ? nullptr : std::aligned_alloc(step, (bytes + step - 1) / step * step);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  void* const memory = ::operator new(bytes, alignment, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
