#pragma once
// Paces long messages to a peer on whose path a queue was found. They leave at five quarters of the recent rate of
// delivery, in bursts of some 20 us. So a sender that resumes with an open window does not put all of it into the queue
// of the bottleneck link at once. Off the fast path: a peer without a queue is never asked.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::link {

class Pacer {
 public:
  /// Returns the bytes of one burst, at least two segments. `rate` in bytes per nanosecond; 0: unknown, no limit.
  static std::uint32_t burst(double rate, std::uint32_t segment) {
    if (rate <= 0) return kBurstMost;
    const double bytes = std::min(rate * static_cast<double>(kBurst.count()), static_cast<double>(kBurstMost));
    return std::max(static_cast<std::uint32_t>(bytes), 2 * segment);
  }

  base::Instant next() const { return next_; }
  /// Returns whether a burst may go now. If not, the caller checks the peer again at next().
  bool may_send(base::Instant now) {
    if (now >= next_) return true;
    is_waiting_ = true;
    return false;
  }
  bool is_waiting() const { return is_waiting_; }

  /// Charges a burst. `wait_most`: the peer's round trip, the longest wait. A rate measured while the path carried
  /// nothing must not hold back what it carries now.
  void on_sent(std::uint64_t bytes, double rate, base::Duration wait_most, base::Instant now) {
    if (rate <= 0) return;
    const double wait = static_cast<double>(bytes) / (rate * kGain);
    // A peer that waited and was woken late catches up; one that had no data or no window does not.
    const base::Instant from = is_waiting_ ? now - kLateMost : now;
    next_ =
        std::max(next_, from) +
        (wait < static_cast<double>(wait_most.count()) ? base::Duration(static_cast<std::int64_t>(wait)) : wait_most);
    if (next_ > now) is_waiting_ = false;
  }
  /// Called when nothing could be sent for other reasons.
  void on_blocked() { is_waiting_ = false; }

 private:
  static constexpr double kGain = 1.25;
  static constexpr base::Duration kBurst = std::chrono::microseconds(20), kLateMost = std::chrono::milliseconds(1);
  static constexpr std::uint32_t kBurstMost = 65'507;

  base::Instant next_{};
  bool is_waiting_ = false;
};

}  // namespace fairlead::link
