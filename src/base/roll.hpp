#pragma once
// The list of all objects of one kind in this process. Kept in an OfProcess (base/process_mark.hpp), so that the child
// of a fork begins with an empty list.

#include <algorithm>
#include <mutex>
#include <vector>

namespace fairlead::base {

template <typename T>
class Roll {
 public:
  void enter(T& one) {
    const std::scoped_lock lock(mutex_);
    all_.push_back(&one);
  }
  /// After it returns, no thread reaches the object through this list any more.
  void leave(T& one) {
    const std::scoped_lock lock(mutex_);
    std::erase(all_, &one);
  }
  template <typename Visit>
  void for_each(Visit&& visit) {
    const std::scoped_lock lock(mutex_);
    for (T* one : all_) visit(*one);
  }

  /// While it is locked no object enters or leaves, and locked_all() may be read.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  const std::vector<T*>& locked_all() const noexcept { return all_; }

 private:
  std::mutex mutex_;
  std::vector<T*> all_;
};

}  // namespace fairlead::base
