#pragma once
// A pool of objects of one type; take and give are O(1). It is last in, first out, so that an object in use stays in
// the cache. The pool allocates in steps up to a bound, and frees memory only when it is destroyed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "base/ensure.hpp"

namespace fairlead::link {

template <typename T>
class ObjectPool {
 public:
  explicit ObjectPool(std::size_t most) : most_(most) {}

  /// Returns an object in the state its last user left it, or null if the bound is reached or there is no memory.
  T* take() {
    if (free_.empty() && !grow()) [[unlikely]]
      return nullptr;
    T* object = free_.back();
    free_.pop_back();
    return object;
  }

  void give(T* object) {
    ENSURE(free_.size() < made_, "{} objects given back of {} made", free_.size() + 1, made_);
    free_.push_back(object);
  }

  /// Returns object `index` in order of allocation, in use or not; null beyond made().
  T* at(std::size_t index) { return index < made_ ? &steps_[index / kStep][index % kStep] : nullptr; }
  std::size_t made() const { return made_; }
  std::size_t in_use() const { return made_ - free_.size(); }
  bool has_free() const { return !free_.empty() || (made_ < most_ && !lacks_memory_); }
  /// True if the last attempt to grow failed for want of memory.
  bool lacks_memory() const { return lacks_memory_; }

 private:
  bool grow() {
    const std::size_t count = std::min(kStep, most_ - made_);
    if (count == 0) return false;
    lacks_memory_ = true;
    try {
      free_.reserve(made_ + count);
      steps_.push_back(std::make_unique<T[]>(count));
    } catch (const std::bad_alloc&) {
      return false;
    }
    lacks_memory_ = false;
    for (std::size_t i = count; i-- > 0;) {
      T& object = steps_.back()[i];
      if constexpr (requires { object.room; }) object.room = static_cast<std::uint32_t>(made_ + i);
      free_.push_back(&object);
    }
    made_ += count;
    return true;
  }

  static constexpr std::size_t kStep = 64;
  std::size_t most_;
  std::size_t made_ = 0;
  bool lacks_memory_ = false;
  std::vector<std::unique_ptr<T[]>> steps_;
  std::vector<T*> free_;
};

}  // namespace fairlead::link
