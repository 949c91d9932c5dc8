#pragma once
// Replaces std::atomic<std::uint64_t> in code under test: each access is a step of the running WeakWorld. Zeroed memory
// is a word of value 0, as with std::atomic.

#include <atomic>
#include <cstdint>

namespace fairlead::tests {

class CheckedWord {
 public:
  static constexpr bool is_always_lock_free = true;

  CheckedWord() = default;
  CheckedWord(const CheckedWord&) = delete;
  CheckedWord& operator=(const CheckedWord&) = delete;

  std::uint64_t load(std::memory_order order) const;
  void store(std::uint64_t value, std::memory_order order);

 private:
  friend class WeakWorld;

  mutable std::uint64_t number_ = 0;  // index of its stores in the world; 0: not accessed yet
};

}  // namespace fairlead::tests
