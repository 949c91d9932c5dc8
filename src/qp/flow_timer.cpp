// What happens by itself: pauses end, answers that do not come are asked for again, acknowledgements that found no
// company go alone, and what the link had no room for is tried again.

#include <algorithm>
#include <chrono>
#include <utility>

#include "qp/flows.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;
using verbs::WcStatus;

/// When the flow wants to be looked at; kNever if it waits for nothing.
base::Instant Flows::due(const Flow& flow) {
  base::Instant at = flow.gap_due;
  if (flow.state() != verbs::QpState::rts && flow.state() != verbs::QpState::sqd) return at;
  if (flow.is_paused) return std::min(at, flow.resume_at);
  if (flow.plan.type == QpType::rc && flow.head != flow.next) at = std::min(at, flow.answer_due);
  return at;
}

void Flows::set_timer(Flow& flow, base::Instant at) {
  if (at == base::kNever || (flow.timer_hook.is_linked() && flow.timer_at <= at)) return;
  flow.timer_hook.unlink();
  flow.timer_at = at;
  timers_.insert(flow);
}

void Flows::on_timer(Flow& flow, base::Instant now) {
  if (now >= flow.gap_due) {
    // UC: what is missing is not waited for any longer.
    flow.gap_due = base::kNever;
    if (flow.first_arrival != kNone && flow.can_receive()) {
      const std::uint32_t first = arrivals_[flow.first_arrival].sequence;
      counters_.dropped_gap += first - flow.turn.next();
      flow.turn.pass_to(first);
      drain(flow, now);
      if (flow.first_arrival != kNone) flow.gap_due = now + kGapPatience;
    }
  }
  if (flow.is_paused && now >= flow.resume_at) {
    if (flow.is_lost) return end_lost(flow, now);
    pump(flow, now);
  }
  const bool is_waiting = flow.plan.type == QpType::rc && flow.head != flow.next && !flow.is_paused &&
                          (flow.state() == verbs::QpState::rts || flow.state() == verbs::QpState::sqd);
  if (!is_waiting || now < flow.answer_due) return;
  const SendEntry& oldest = flow.entry(flow.head);
  flow.answer_due = now + answer_patience(flow);
  if (oldest.flights != 0) return;  // the link is at it, and will tell if the peer is gone
  if (flow.attributes.timeout != 0 && flow.retries_left == 0) {
    fail_request(flow, flow.head, WcStatus::retry_exc_err, Cause::no_answer);
    return complete_in_order(flow, now);
  }
  if (flow.attributes.timeout != 0) --flow.retries_left;
  go_back(flow, flow.head, {}, now);
  pump(flow, now);
}

void Flows::stall(Flow& flow) {
  if (std::exchange(flow.is_stalled, true)) return;
  stalled_.push_back(flow.index);
}

bool Flows::progress(base::Instant now) {
  now_ = now;
  bool any = false;
  if (!owing_.empty()) {
    for (std::size_t i = 0; i < owing_.size(); ++i) {
      Flow& flow = *flows_[owing_[i]];
      if (flow.is_answer_owed) send_owed(flow, now);
    }
    owing_.clear();
    any = true;
  }
  if (!deferred_.is_empty()) [[unlikely]]
    retry_deferred(now);
  constexpr std::size_t kTimersInPass = 256;
  for (std::size_t i = 0; i < kTimersInPass && !timers_.empty() && timers_.begin()->timer_at <= now; ++i) {
    Flow& flow = *timers_.begin();
    flow.timer_hook.unlink();
    flow.timer_at = base::kNever;
    on_timer(flow, now);
    set_timer(flow, due(flow));
    any = true;
  }
  if (!stalled_.empty()) [[unlikely]] {
    for (std::size_t tries = std::min<std::size_t>(stalled_.size(), 64); tries > 0; --tries) {
      const std::uint32_t index = stalled_.front();
      stalled_.erase(stalled_.begin());
      flows_[index]->is_stalled = false;
      pump(*flows_[index], now);
    }
  }
  return any;
}

base::Instant Flows::next_deadline() const {
  base::Instant at = timers_.empty() ? base::kNever : timers_.begin()->timer_at;
  if (!owing_.empty()) return base::Instant{};
  // Room in the link comes with acknowledgements, which wake somebody; this is for when it came from elsewhere.
  if (!stalled_.empty() || !deferred_.is_empty()) at = std::min(at, now_ + std::chrono::milliseconds(1));
  return at;
}

}  // namespace fairlead::qp
