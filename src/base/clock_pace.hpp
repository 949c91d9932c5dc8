#pragma once
// How often a poller reads the clock. Reading it costs as much as polling a ring. So a poller reuses the last time for
// as many polls as recently took some microseconds.

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::base {

class ClockPace {
 public:
  /// `times_most`: limit of consecutive polls without a reading. A poller that suddenly has other work is late by up to
  /// so many polls.
  explicit ClockPace(std::uint32_t times_most = 255) : times_most_(times_most) {}
  /// Returns true if the last time read may be used once more.
  bool may_skip() noexcept {
    if (left_ == 0) return false;
    --left_;
    return true;
  }
  /// Called with each new reading, `now`; returns it.
  Instant asked(Instant now) noexcept {
    const auto took = static_cast<std::uint64_t>(std::max<std::int64_t>((now - asked_at_).count(), 1));
    asked_at_ = now;
    times_ = took > kAim ? static_cast<std::uint32_t>(times_ * kAim / took) : std::min(2 * times_ + 1, times_most_);
    left_ = times_;
    return now;
  }
  /// Called after nobody has polled for a while.
  void stop() noexcept { left_ = times_ = 0; }

 private:
  static constexpr std::uint64_t kAim = 8'000;  // nanoseconds

  std::uint32_t times_most_;
  std::uint32_t left_ = 0, times_ = 0;
  Instant asked_at_{};
};

}  // namespace fairlead::base
