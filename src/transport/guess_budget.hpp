#pragma once
// How many wrong secrets a peer may still show: keys of exposed memory or of regions, tags of endpoints, secrets in
// replies. Honest peers show some, such as a key that its owner has just withdrawn, or a reply to an endpoint just
// closed. They show at most as many as they have operations in flight then. So the budget is that large, and refills (a
// token bucket); only a persistent peer exhausts it. A guess costs the more, the fewer bits the secret has.

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::transport {

class GuessBudget {
 public:
  static constexpr std::int64_t kMost = 65'536;
  static constexpr std::int64_t kPerSecond = 1024;

  /// Charges a guess; returns false if the budget does not cover it.
  bool spend(std::int64_t cost, base::Instant now) {
    const std::int64_t back = std::max<std::int64_t>((now - counted_at_) / kComesBackAfter, 0);
    left_ = back >= kMost - left_ ? kMost : left_ + back;
    counted_at_ = left_ == kMost ? now : counted_at_ + back * kComesBackAfter;
    const bool is_covered = cost <= left_;
    left_ -= is_covered ? cost : left_;
    return is_covered;
  }

 private:
  static constexpr base::Duration kComesBackAfter = base::Duration(std::chrono::seconds(1)) / kPerSecond;

  std::int64_t left_ = kMost;
  base::Instant counted_at_{};
};

}  // namespace fairlead::transport
