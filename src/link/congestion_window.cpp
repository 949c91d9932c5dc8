#include "link/congestion_window.hpp"

namespace fairlead::link {
namespace {

constexpr base::Duration kPeriod = std::chrono::seconds(10);
constexpr std::uint32_t kRoundsRemembered = 16;
constexpr std::uint32_t kTrialRounds = 4, kDescentRounds = 32;
constexpr std::uint32_t kRoundsStanding = 4;  // a queue that stands for so long is no burst of this flow

constexpr std::uint32_t kRoundsToSettle = 32;  // before that the rate of delivery grows, whatever the window
constexpr base::Duration kRoundCounts = std::chrono::milliseconds(100);  // at most, towards the end of congestion
constexpr base::Duration kTrialPause = std::chrono::seconds(1), kTrialPauseMost = std::chrono::seconds(60);
constexpr std::uint64_t kSegmentsToJudge = 8;  // fewer segments are no sample of the loss

}  // namespace

void CongestionWindow::open(std::uint64_t most, std::uint64_t least, std::uint64_t allowance, std::uint64_t first) {
  *this = {};
  most_ = most;
  least_ = std::min(least, most);
  allowance_ = std::clamp(allowance, least_, most);
  first_ = bytes_ = std::clamp(first, allowance_, most);
}

void CongestionWindow::remember_least(base::Instant now) {
  if (now >= period_ends_) {
    period_ends_ = now + kPeriod;
    empty_before_ = empty_;
    empty_ = kNone;
  }
  empty_ = std::min(empty_, round_trip_);
}

/// Shrinks the window by four fifths of the excess delay's share of the round trip, at most to half.
void CongestionWindow::shrink(base::Duration excess, std::uint64_t floor) {
  // Only the part of the window that was used can have caused the queue.
  const std::uint64_t used = std::clamp(in_flight_most_, least_, bytes_);
  const std::uint64_t share = static_cast<std::uint64_t>(1000 * excess / round_trip_) * 4 / 5;
  is_congested_ = true;
  bytes_ = std::min(bytes_, std::max(used - used * std::min<std::uint64_t>(share, 500) / 1000, floor));
}

/// Updates the bandwidth-delay product: the recent maximum of what the path delivers in an empty round trip. Rounds in
/// which the window was not in use do not lower it, since they do not show what the path can deliver.
void CongestionWindow::judge_rate(base::Instant now) {
  const auto lasted = static_cast<double>((now - round_began_).count());
  rate_ = round_began_ == base::Instant{} || lasted <= 0 ? 0 : static_cast<double>(bytes_acked_) / lasted;
  const auto empty = static_cast<double>(std::min(empty_, empty_before_).count());
  const std::uint64_t remembered = is_in_use() ? filling_ - filling_ / kRoundsRemembered : filling_;
  filling_ = std::max(static_cast<std::uint64_t>(rate_ * empty), remembered);
  if (!is_in_use()) return;
  rounds_in_use_ = std::min(rounds_in_use_ + 1, kRoundsRemembered);
  usual_rate_ += (rate_ - usual_rate_) / rounds_in_use_;
}

/// Shortens a queue that outlasts the bursts of this flow, if that does not cost it throughput.
void CongestionWindow::descend(base::Instant now) {
  if (rounds_standing_ < kRoundsStanding || trial_rounds_ != 0) return;
  const std::uint64_t wanted = enough();
  if (wanted >= bytes_ || now < descent_not_before_) return try_more(now);
  if (descent_rounds_ == 0) {
    descent_rounds_ = kDescentRounds;
    descent_from_ = bytes_;
    descent_rate_ = usual_rate_;
  }
  is_congested_ = true;
  bytes_ = wanted;
}

/// Undoes a descent that has cost throughput: then a busy host is the cause of the delay. The steps of many rounds are
/// judged together, because each may be small.
void CongestionWindow::judge_descent(base::Instant now) {
  if (descent_rounds_ == 0) return;
  --descent_rounds_;
  if (usual_rate_ >= descent_rate_ * 3 / 4) return;
  descent_rounds_ = 0;
  is_congested_ = false;
  bytes_ = std::max(bytes_, descent_from_);
  descent_pause_ = std::clamp(2 * descent_pause_, kTrialPause, kTrialPauseMost);
  descent_not_before_ = now + descent_pause_;
}

/// The delay is not caused by our queue: doubles the window for a trial, as long as that delivers more.
void CongestionWindow::try_more(base::Instant now) {
  if (!is_limiting() || !is_in_use() || trial_rounds_ != 0 || rounds_ < kRoundsToSettle || now < more_not_before_)
    return;
  trial_rounds_ = kTrialRounds;
  bytes_before_ = bytes_;
  rate_tried_ = 0;
  bytes_ = std::min(2 * bytes_, most_);
}

void CongestionWindow::judge_trial(base::Instant now) {
  if (trial_rounds_ == 0) return;
  rate_tried_ += rate_ / kTrialRounds;
  if (--trial_rounds_ != 0) return;
  if (rate_tried_ >= usual_rate_ * 5 / 4) {
    usual_rate_ = rate_tried_;
    is_congested_ = false;
    return;
  }
  bytes_ = std::min(bytes_, bytes_before_);
  more_pause_ = std::clamp(2 * more_pause_, kTrialPause, kTrialPauseMost);
  more_not_before_ = now + more_pause_;
}

/// Grows the window. After a queue was found, only as far as the rate of delivery follows; beyond that a larger window
/// is tried now and then.
void CongestionWindow::grow(base::Instant now) {
  const std::uint64_t most = is_congested_ ? std::min(enough(), most_) : most_;
  if (bytes_ >= most) return try_more(now);
  bytes_ = std::min(bytes_ + std::max(bytes_ / 8, least_ / 2), most);
  is_congested_ = is_congested_ && is_limiting();
}

/// Returns whether a queue outlasts the bursts of this flow. A lone message may be delayed as long by a slow host.
bool CongestionWindow::is_standing(base::Duration queue) const {
  if (in_flight_most_ <= allowance_) return false;
  return queue > (in_flight_most_ > 2 * allowance_ ? kQueueStanding : kQueueShort);
}

/// A flow that never needs all of its window never proves that the path carries more. So the path counts as congested
/// until there was neither a queue nor heavy loss for a while, which doubles each time. A pause of the flow proves
/// nothing, so a round counts for kRoundCounts at most.
void CongestionWindow::end_congestion(bool is_hindered, base::Instant now) {
  const base::Duration pause = std::max(now - round_began_ - kRoundCounts, base::Duration::zero());
  hindered_at_ = is_hindered ? now : hindered_at_ + pause;
  if (!is_congested_ || now - hindered_at_ < free_for_) return;
  is_congested_ = false;
  bytes_ = std::max(bytes_, first_);
  free_for_ = std::min(2 * free_for_, kTrialPauseMost);
}

void CongestionWindow::end_round(base::Instant now) {
  if (round_trip_ <= base::Duration::zero() || round_trip_ == kNone) return;
  ++rounds_;
  remember_least(now);
  judge_rate(now);
  judge_trial(now);
  judge_descent(now);
  if (acked_ + lost_ >= kSegmentsToJudge || is_limiting()) {
    const auto share = static_cast<std::int64_t>(1000 * lost_ / std::max<std::uint64_t>(acked_ + lost_, 1));
    loss_ = static_cast<std::uint32_t>(loss_ + (share - std::int64_t{loss_}) / 8);
  }
  const base::Duration queue = round_trip_ - std::min(empty_, empty_before_);
  rounds_late_ = queue > kQueueLong ? rounds_late_ + 1 : 0;
  if (loss_ > kLossHeavy) {
    shrink(std::max(queue - kQueueShort, round_trip_ * 5 / 16), least_);  // by a quarter at least
  } else if (queue > kQueueShort && loss_ > kLossUsual) {
    shrink(queue - kQueueShort, least_);
  } else if (rounds_late_ >= kRoundsLate) {
    shrink(queue - kQueueLong, std::max(most_ / 4, least_));
  } else if (is_standing(queue)) {
    if (rounds_standing_++ == 0) rounds_in_use_ = 0;  // the usual rate is that of the present path
    descend(now);
  } else if (is_limiting() && is_in_use()) {
    grow(now);
  }
  if (!is_standing(queue)) rounds_standing_ = 0;
  end_congestion(queue > kQueueStanding || loss_ > kLossHeavy, now);
  round_began_ = now;
  round_ends_ = now + round_trip_;
  acked_ = bytes_acked_ = lost_ = in_flight_most_ = 0;
  round_trip_ = kNone;
}

}  // namespace fairlead::link
