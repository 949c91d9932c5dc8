#pragma once
// Errors noticed until the engine asks, at most 64: when the list is full, new ones are dropped, since they are hints.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "path/path.hpp"

namespace fairlead::path {

class UnreachableList {
 public:
  void add(const Unreachable& entry) {
    if (count_ > 0 && is_same(entries_[count_ - 1], entry)) count_ -= 1;  // a repeated error replaces the last entry
    if (count_ < entries_.size()) entries_[count_++] = entry;
  }

  std::size_t take(std::span<Unreachable> out) {
    const std::size_t taken = std::min(out.size(), count_);
    std::copy_n(entries_.begin(), taken, out.begin());
    std::copy(entries_.begin() + taken, entries_.begin() + count_, entries_.begin());
    count_ -= taken;
    return taken;
  }

  bool has_any() const { return count_ > 0; }

 private:
  static bool is_same(const Unreachable& a, const Unreachable& b) {
    return a.to == b.to && a.system_errno == b.system_errno && (a.size_hint == 0) == (b.size_hint == 0) &&
           a.is_prohibited == b.is_prohibited && a.is_local == b.is_local;
  }

  std::array<Unreachable, 64> entries_;
  std::size_t count_ = 0;
};

}  // namespace fairlead::path
