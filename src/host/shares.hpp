#pragma once
// Divides an engine's operations among the applications that use it. Each has a guaranteed share. The rest is common:
// an application may hold as much of it as is free at that moment. This is a dynamic threshold, as in switches with a
// shared buffer. Greedy applications thus leave room for one that comes later.

#include <algorithm>
#include <cstdint>

namespace fairlead::host {

class Shares {
 public:
  /// Half of `total` is guaranteed, in equal parts.
  Shares(std::uint64_t total, std::uint64_t applications_max)
      : guaranteed_(std::max<std::uint64_t>(1, total / 2 / applications_max)),
        common_(total - std::min(total, guaranteed_ * applications_max)) {}

  std::uint64_t guaranteed() const noexcept { return guaranteed_; }
  /// Takes one operation for an application that has `own`. Returns false if it must wait or do without.
  bool take(std::uint64_t own) {
    if (own < guaranteed_) return true;
    if (own - guaranteed_ + common_used_ >= common_) return false;
    ++common_used_;
    return true;
  }
  /// Counts an operation that it had under the previous program.
  void keep(std::uint64_t own) {
    if (own >= guaranteed_) ++common_used_;
  }
  /// Returns one operation of an application that has `own`.
  void give_back(std::uint64_t own) {
    if (own > guaranteed_) --common_used_;
  }

 private:
  const std::uint64_t guaranteed_, common_;
  std::uint64_t common_used_ = 0;
};

}  // namespace fairlead::host
