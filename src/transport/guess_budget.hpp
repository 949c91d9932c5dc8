#pragma once
// How many wrong secrets a peer may still show (keys of exposed memory, tags of endpoints, what replies carry, keys of
// regions). Honest peers show some: a key of memory that its owner has just taken back, a reply to an endpoint that has
// just been closed; at most as many as they have operations under way when that happens. So the budget is as large,
// and comes back; only who goes on and on uses it up. What a guess may cost is a part of the budget, by how few bits
// the secret has.

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::transport {

class GuessBudget {
 public:
  static constexpr std::int64_t kMost = 65'536;
  static constexpr std::int64_t kPerSecond = 1024;

  /// False if that was more than was left.
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
