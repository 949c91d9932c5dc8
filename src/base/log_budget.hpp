#pragma once
// How many lines of a log are written in a time: what is beyond is counted, and told before the next that is written.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/time.hpp"

namespace fairlead::base {

class LogBudget {
 public:
  static constexpr std::uint32_t kBurst = 100;
  static constexpr base::Duration kOneEvery = std::chrono::milliseconds(100);  // comes back

  /// Whether a line may be written now.
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
  /// One was taken and not written all the same.
  void lose() noexcept { ++left_out_; }
  /// Lines that were not, since the last call.
  std::uint64_t take_left_out() noexcept { return std::exchange(left_out_, 0); }

 private:
  std::uint32_t left_ = kBurst;
  std::uint64_t left_out_ = 0;
  Instant counted_at_{};
};

}  // namespace fairlead::base
