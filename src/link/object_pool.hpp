#pragma once
// Objects of one type that are taken and given back in O(1), last given first taken, so that a hot one stays in the
// cache. Memory comes in steps up to a bound and goes back only with the pool.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "base/ensure.hpp"

namespace fairlead::link {

template <typename T>
class ObjectPool {
 public:
  explicit ObjectPool(std::size_t most) : most_(most) {}

  /// An object as its last user left it, or null if the bound is reached, or there is no memory.
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

  std::size_t in_use() const { return made_ - free_.size(); }
  bool has_free() const { return !free_.empty() || (made_ < most_ && !lacks_memory_); }
  /// When one was wanted last.
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
    made_ += count;
    for (std::size_t i = count; i-- > 0;) free_.push_back(&steps_.back()[i]);
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
