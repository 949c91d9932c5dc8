#pragma once
// How many bytes may be in flight to one peer besides what both sides' windows allow. It begins with what fills a local
// path twice over, so that what is in flight stays in the processors' caches, and grows where the path carries more.
// What it costs is a few additions per ACK.
//
// Judged once per round trip, by the least round trip measured in it (a busy host delays some samples, a queue all):
//
// - heavy loss, more than kLossHeavy, whatever the delay: less by a quarter, or by the excess;
// - delay and loss, a queue longer than kQueueShort while more than kLossUsual is lost: less by the excess, to half;
// - delay alone, longer than kQueueLong for kRoundsLate round trips: less by the excess, but a quarter stays;
// - a standing queue, longer than kQueueStanding while the window is in use: to twice what the rate of delivery fills
//   an empty path with, plus an allowance for ACKs that come together, so that what passes beside it finds the queue
//   short. Taken back, and not tried again for a while, if less is delivered so: then it was a busy host and no queue.
//   Where it is as short as that already, twice as much, kept if more is delivered so: that is a busy host, too;
// - neither: more by an eighth, as long as it is in use.
//
// Losses are averaged over some 8 round trips. So random loss of a few per cent is repaired and means nothing.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace fairlead::link {

class CongestionWindow {
 public:
  static constexpr base::Duration kQueueShort = std::chrono::microseconds(150);
  static constexpr base::Duration kQueueStanding = std::chrono::microseconds(60);
  static constexpr base::Duration kQueueLong = std::chrono::milliseconds(3);
  static constexpr std::uint32_t kLossUsual = 80;   // in thousandths
  static constexpr std::uint32_t kLossHeavy = 250;  // in thousandths
  static constexpr std::uint32_t kRoundsLate = 3;

  /// `least`: two segments. `allowance`: in flight besides what fills the path. `first`: until the path shows that it
  /// delivers more with more.
  void open(std::uint64_t most, std::uint64_t least, std::uint64_t allowance, std::uint64_t first);

  std::uint64_t bytes() const { return bytes_; }
  bool is_limiting() const { return bytes_ < most_; }
  /// The path has shown a queue of ours, and nothing since that it carries more.
  bool is_congested() const { return is_congested_; }
  /// What the path has delivered of late, in bytes per nanosecond; 0: not known.
  double rate() const {
    return filling_ == 0 ? 0
                         : static_cast<double>(filling_) / static_cast<double>(std::min(empty_, empty_before_).count());
  }

  void on_loss() { ++lost_; }
  /// An ACK of so many segments and bytes; `in_flight` bytes were on the way before it.
  void on_ack(std::uint64_t segments, std::uint64_t bytes, std::uint64_t in_flight, base::Duration round_trip,
              base::Instant now) {
    acked_ += segments;
    bytes_acked_ += bytes;
    in_flight_most_ = std::max(in_flight_most_, in_flight);
    round_trip_ = std::min(round_trip_, round_trip);
    if (now >= round_ends_) [[unlikely]]
      end_round(now);
  }

 private:
  static constexpr base::Duration kNone = base::Duration::max();

  void end_round(base::Instant now);
  void remember_least(base::Instant now);
  void judge_rate(base::Instant now);
  void judge_trial(base::Instant now);
  void try_to_fill_only(base::Instant now);
  void try_more(base::Instant now);
  void begin_trial(std::uint64_t wanted);
  void grow(base::Instant now);
  /// Fills the path as it delivers now, and twice that.
  std::uint64_t enough() const { return std::max(2 * filling_ + allowance_, least_); }
  bool is_in_use() const { return in_flight_most_ > bytes_ - bytes_ / 4; }
  void shrink(base::Duration excess, std::uint64_t floor);

  std::uint64_t bytes_ = ~std::uint64_t{0}, most_ = ~std::uint64_t{0}, least_ = 0, allowance_ = 0;
  bool is_congested_ = false;
  std::uint64_t filling_ = 0;  // what fills the empty path at the rate of delivery
  base::Instant round_began_, round_ends_;

  // Whether the smaller window delivers as much, or the larger one more.
  std::uint32_t trial_rounds_ = 0;  // left
  bool is_for_more_ = false;
  std::uint64_t bytes_before_ = 0;
  double rate_ = 0, rate_before_ = 0, rate_tried_ = 0;  // bytes per nanosecond
  double rate_most_ = 0;                                // of late
  std::uint32_t rounds_ = 0;
  base::Instant trial_not_before_, more_not_before_;
  base::Duration trial_pause_{}, more_pause_{};

  // Of this round.
  std::uint64_t acked_ = 0, bytes_acked_ = 0, lost_ = 0, in_flight_most_ = 0;
  base::Duration round_trip_ = kNone;

  std::uint32_t loss_ = 0;  // averaged, in thousandths
  std::uint32_t rounds_late_ = 0;
  // The empty path's round trip: the least of this period and the one before, so that another route is believed.
  base::Duration empty_ = kNone, empty_before_ = kNone;
  base::Instant period_ends_;
};

}  // namespace fairlead::link
