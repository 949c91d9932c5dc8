#pragma once
// The congestion window: how many bytes may be in flight to one peer, besides the limits of both sides' windows. It
// begins at twice what fills a local path, so that the data in flight stays in the processors' caches. It grows where
// the path carries more. An ACK costs a few additions.
//
// The window is judged once per round trip, by the least round trip measured in that round. (A busy host delays some
// samples, a queue delays all.)
//
// - Heavy loss (more than kLossHeavy), whatever the delay: the window shrinks by a quarter, or by the excess delay if
//   that is more.
// - Delay and loss (a queue longer than kQueueShort, and more than kLossUsual lost): it shrinks by the excess, at most
//   to half.
// - Delay alone, longer than kQueueLong for kRoundsLate round trips: it shrinks by the excess, but a quarter of the
//   maximum stays.
// - A standing queue (in several rounds in a row longer than kQueueStanding while more than twice the allowance is in
//   flight, or longer than kQueueShort while more than the allowance is): the window goes to twice the bandwidth-delay
//   product, plus an allowance for ACKs that arrive together, so that other traffic finds a short queue. If the usual
//   rate of delivery falls with it, a busy host caused the delay; the descent is undone and not tried again for a
//   while. If the window is that small already, a doubled window is tried, and kept if it delivers more.
// - Otherwise it grows by an eighth, as long as it is in use.
//
// Losses are averaged over some 8 round trips. So random loss of a few per cent is repaired, and does not shrink the
// window.

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

  /// Opens the window for a new session; all arguments in bytes. `least`: the minimum, two segments. `allowance`: in
  /// flight in addition to the bandwidth-delay product. `first`: the initial window.
  void open(std::uint64_t most, std::uint64_t least, std::uint64_t allowance, std::uint64_t first);

  std::uint64_t bytes() const { return bytes_; }
  bool is_limiting() const { return bytes_ < most_; }
  /// True after a queue was found on the path, until the path has proven that it carries more, or had no queue for
  /// long.
  bool is_congested() const { return is_congested_; }
  /// Recent rate of delivery, in bytes per nanosecond; 0 if unknown.
  double rate() const {
    return filling_ == 0 ? 0
                         : static_cast<double>(filling_) / static_cast<double>(std::min(empty_, empty_before_).count());
  }

  void on_loss() { ++lost_; }
  /// Counts an ACK of `segments` and `bytes`. `in_flight`: bytes in flight before it arrived.
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
  void descend(base::Instant now);
  void judge_descent(base::Instant now);
  void try_more(base::Instant now);
  void judge_trial(base::Instant now);
  void grow(base::Instant now);
  bool is_standing(base::Duration queue) const;
  void end_congestion(bool is_hindered, base::Instant now);
  /// Twice the bandwidth-delay product, plus the allowance.
  std::uint64_t enough() const { return std::max(2 * filling_ + allowance_, least_); }
  bool is_in_use() const { return in_flight_most_ > bytes_ - bytes_ / 4; }
  void shrink(base::Duration excess, std::uint64_t floor);

  std::uint64_t bytes_ = ~std::uint64_t{0}, most_ = ~std::uint64_t{0}, least_ = 0, allowance_ = 0, first_ = 0;
  bool is_congested_ = false;
  std::uint64_t filling_ = 0;  // bandwidth-delay product: rate of delivery times the empty path's round trip, in bytes
  base::Instant round_began_, round_ends_;

  // Rates of delivery, in bytes per nanosecond: of the last round, and the moving average over rounds in which the
  // window was in use.
  double rate_ = 0, usual_rate_ = 0;
  std::uint32_t rounds_ = 0, rounds_in_use_ = 0;

  // A descent: the window became smaller because of a queue.
  std::uint32_t descent_rounds_ = 0;  // left until it is accepted; 0: none
  std::uint64_t descent_from_ = 0;    // the window before
  double descent_rate_ = 0;           // the usual rate before
  base::Instant descent_not_before_;
  base::Duration descent_pause_{};

  // A trial: whether a larger window delivers more.
  std::uint32_t trial_rounds_ = 0;  // rounds left
  std::uint64_t bytes_before_ = 0;
  double rate_tried_ = 0;  // mean of its rounds
  base::Instant more_not_before_;
  base::Duration more_pause_{};

  // When a queue or heavy loss was found last, and for how long there must be neither until the path is not congested.
  base::Instant hindered_at_;
  base::Duration free_for_ = std::chrono::seconds(1);

  // Measured in this round.
  std::uint64_t acked_ = 0, bytes_acked_ = 0, lost_ = 0, in_flight_most_ = 0;
  base::Duration round_trip_ = kNone;

  std::uint32_t loss_ = 0;  // moving average, in thousandths
  std::uint32_t rounds_late_ = 0, rounds_standing_ = 0;
  // Round trip of the empty path: the least of this period and of the previous one, so that a change of route is
  // noticed.
  base::Duration empty_ = kNone, empty_before_ = kNone;
  base::Instant period_ends_;
};

}  // namespace fairlead::link
