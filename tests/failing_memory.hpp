#pragma once
// Memory that fails: the operators new of the program, which ask a plan. Included once in a program.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace fairlead::tests {

/// Allocations that are asked for while `is_watched` are numbered from 1 on; those from `first` to `last` fail.
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

}  // namespace fairlead::tests

// The arrays' and the sized ones call these.
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
