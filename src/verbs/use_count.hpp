#pragma once
// Counts the objects that use another one, which must not end before them.

#include <atomic>
#include <cstdint>

#include "base/ensure.hpp"

namespace fairlead::verbs {

/// Any thread may call it.
class UseCount {
 public:
  UseCount() = default;
  ~UseCount() { ENSURE(count() == 0, "an object ends that {} others use", count()); }
  UseCount(const UseCount&) = delete;
  UseCount& operator=(const UseCount&) = delete;

  /// Returns the number of users before this one.
  std::uint32_t add() { return count_.fetch_add(1); }
  void drop() {
    const std::uint32_t before = count_.fetch_sub(1);
    ENSURE(before != 0, "a user leaves an object that nobody uses");
  }
  std::uint32_t count() const { return count_.load(); }

 private:
  std::atomic<std::uint32_t> count_{0};
};

/// Bounds the number of objects of one kind in a context.
class Quota {
 public:
  explicit Quota(std::uint32_t most) : most_(most) {}
  bool take() {
    if (used_.add() < most_) return true;
    used_.drop();
    return false;
  }
  void give() { used_.drop(); }
  std::uint32_t used() const { return used_.count(); }

 private:
  std::uint32_t most_;
  UseCount used_;
};

}  // namespace fairlead::verbs
