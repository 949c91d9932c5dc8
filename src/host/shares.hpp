#pragma once
// Divides an engine's operations among the applications that use it. Each has a guaranteed part. What lies beyond is
// common: an application may have as many of it as are free at that moment (a dynamic threshold, as of switches that
// share their buffers), so several that take what they can leave room for one that comes late.

#include <algorithm>
#include <cstdint>

namespace fairlead::host {

class Shares {
 public:
  /// Half of `total` is guaranteed, in equal parts.
  Shares(std::uint64_t total, std::uint64_t applications_max)
      : guaranteed_(std::max<std::uint64_t>(1, total / 2 / applications_max)),
        common_(total - std::min(total, guaranteed_ * applications_max)) {}

  /// One more for an application that has `own`; false: it has to wait, or to do without.
  bool take(std::uint64_t own) {
    if (own < guaranteed_) return true;
    if (own - guaranteed_ + common_used_ >= common_) return false;
    ++common_used_;
    return true;
  }
  /// One that it had under the program before this one.
  void keep(std::uint64_t own) {
    if (own >= guaranteed_) ++common_used_;
  }
  /// One of an application's `own`.
  void give_back(std::uint64_t own) {
    if (own > guaranteed_) --common_used_;
  }

 private:
  const std::uint64_t guaranteed_, common_;
  std::uint64_t common_used_ = 0;
};

}  // namespace fairlead::host
