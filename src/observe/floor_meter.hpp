#pragma once
// Measures floors: round trips of an exchange, or time and processor time of a stream. A floor takes the time asked
// for. It takes longer only as long as nothing was counted, because a busy host kept one process from running.

#include <utility>

#include "base/time.hpp"
#include "observe/floor.hpp"
#include "observe/floor_peer.hpp"

namespace fairlead::observe {

/// Longest extension of that time.
inline constexpr base::Duration kLongerMost = std::chrono::seconds(30);

/// Records half of each round trip, after a tenth of the time: until then both processes warm up.
class ExchangeMeter {
 public:
  explicit ExchangeMeter(base::Duration duration)
      : sent_at_(base::MonotonicClock::now()),
        warm_at_(sent_at_ + duration / 10),
        end_(sent_at_ + duration),
        last_(end_ + kLongerMost) {}

  base::Instant end() const { return end_; }
  bool is_over() const { return sent_at_ >= end_ && (floor_.one_way.count() != 0 || sent_at_ >= last_); }
  /// Ends a round trip, and begins the next.
  void lap(bool is_whole) {
    const auto now = base::MonotonicClock::now();
    if (is_whole && now > warm_at_) floor_.one_way.record((now - sent_at_) / 2);
    sent_at_ = now;
  }
  ExchangeFloor take() { return std::move(floor_); }

 private:
  base::Instant sent_at_, warm_at_, end_, last_;
  ExchangeFloor floor_;
};

/// Measures from its construction to end().
class StreamMeter {
 public:
  explicit StreamMeter(base::Duration duration) : duration_(duration) {}

  base::Instant start() const { return start_; }
  bool is_over(base::Instant now, std::uint64_t bytes_arrived) const {
    return now >= start_ + duration_ && (bytes_arrived != 0 || now >= start_ + duration_ + kLongerMost);
  }
  /// Returns the result, and ends the other process.
  StreamFloor end(FloorPeer& peer, base::Instant now) const {
    StreamFloor floor;
    floor.bytes = peer.page().bytes_received.load(std::memory_order_acquire);
    const double cpu_near = thread_cpu_seconds() - cpu_before_;
    const double gigabytes = static_cast<double>(floor.bytes) * 1e-9;
    floor.gb_per_s = gigabytes / std::chrono::duration<double>(now - start_).count();
    const double cpu_far = peer.stop();
    if (floor.bytes > 0) floor.cpu_s_per_gb = (cpu_near + cpu_far) / gigabytes;
    return floor;
  }

 private:
  base::Duration duration_;
  double cpu_before_ = thread_cpu_seconds();
  base::Instant start_ = base::MonotonicClock::now();
};

}  // namespace fairlead::observe
