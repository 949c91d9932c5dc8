#pragma once
// Rate limit for log lines (a token bucket). Lines beyond it are counted, and their number is reported before the next
// line.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/time.hpp"

namespace fairlead::base {

class LogBudget {
 public:
  static constexpr std::uint32_t kBurst = 100;
  static constexpr base::Duration kOneEvery = std::chrono::milliseconds(100);  // time to regain one line

  /// Returns whether a line may be written now.
  bool take(Instant now) noexcept {
    const auto back = std::min<std::int64_t>((now - counted_at_) / kOneEvery, kBurst);
    if (back > 0) {
      left_ = std::min(kBurst, left_ + static_cast<std::uint32_t>(back));
      counted_at_ = now;
    }
    if (left_ == 0) {
      ++left_out_;
      return false;
    }
    --left_;
    return true;
  }
  /// Counts a line that was allowed but not written.
  void lose() noexcept { ++left_out_; }
  /// Returns the number of lines left out since the last call.
  std::uint64_t take_left_out() noexcept { return std::exchange(left_out_, 0); }

 private:
  std::uint32_t left_ = kBurst;
  std::uint64_t left_out_ = 0;
  Instant counted_at_{};
};

}  // namespace fairlead::base
