#pragma once
// How often whoever polls has to ask the clock. Asking costs as much as a look at a ring, so between two questions a
// poller goes on with the time of the last, as many times as took some microseconds before.

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::base {

class ClockPace {
 public:
  /// `times_most`: so many at a time at most; a poller that suddenly has other things to do is late by so many polls.
  explicit ClockPace(std::uint32_t times_most = 255) : times_most_(times_most) {}
  /// True: the time that was asked for last will do once more.
  bool may_skip() noexcept {
    if (left_ == 0) return false;
    --left_;
    return true;
  }
  /// The clock said so just now, to a poller.
  Instant asked(Instant now) noexcept {
    const auto took = static_cast<std::uint64_t>(std::max<std::int64_t>((now - asked_at_).count(), 1));
    asked_at_ = now;
    times_ = took > kAim ? static_cast<std::uint32_t>(times_ * kAim / took) : std::min(2 * times_ + 1, times_most_);
    left_ = times_;
    return now;
  }
  /// Nobody has polled for a while.
  void stop() noexcept { left_ = times_ = 0; }

 private:
  static constexpr std::uint64_t kAim = 8'000;  // nanoseconds

  std::uint32_t times_most_;
  std::uint32_t left_ = 0, times_ = 0;
  Instant asked_at_{};
};

}  // namespace fairlead::base
