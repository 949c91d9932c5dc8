// A reliable flow whose peer is lost: its requests fail when a device's timer would have given up, not before. Programs
// count on that time: who has sent more than the peer waits for has mostly ended itself by then. Until it comes nothing
// is sent (a process that comes back at that address has other queue pairs), nothing of the peer is believed, and what
// is posted waits behind.

#include <algorithm>
#include <chrono>

#include "qp/flows.hpp"

namespace fairlead::qp {
namespace {

using verbs::Cause;
using verbs::QpType;
using verbs::WcStatus;

constexpr base::Duration kLossPatienceMost = std::chrono::seconds(60);

Cause cause_of(Status status) {
  switch (status) {
    case Status::unreachable:
      return Cause::never_heard;
    case Status::restarted:
      return Cause::peer_restarted;
    case Status::refused:
      return Cause::port_unreachable;
    default:
      return Cause::no_ack;
  }
}

}  // namespace

/// What a device does by itself, without end if there is no timeout: then we do not wait at all.
base::Instant Flows::end_of_patience(const Flow& flow, base::Instant now) {
  if (flow.attributes.timeout == 0) return now;
  base::Instant since = flow.waits_since;
  if (flow.not_ready_since != base::kNever) {
    since = flow.not_ready_since;
  } else if (flow.head == flow.next) {
    since = flow.is_paused ? std::max(now, flow.resume_at) : now;  // it would be sent then
  }
  return since + std::min(answer_patience(flow) * (flow.retries_left + 1), kLossPatienceMost);
}

/// The flow has requests that have not ended.
void Flows::lose(Flow& flow, Status status, base::Instant now) {
  if (flow.is_lost) return;
  const base::Instant at = end_of_patience(flow, now);
  flow.is_lost = true;
  flow.loss = cause_of(status);
  if (at <= now) return end_lost(flow, now);
  if (flow.begun == flow.head) ++flow.begun;  // a queue that is drained waits for it
  flow.is_paused = true;
  flow.resume_at = at;
  set_timer(flow, due(flow));
}

void Flows::end_lost(Flow& flow, base::Instant now) {
  flow.is_lost = false;
  fail_request(flow, flow.head, WcStatus::retry_exc_err, flow.loss);
  complete_in_order(flow, now);
}

/// Requests that have arrived and wait for their answer, or for their turn to be sent again, have no outcome to come.
void Flows::end_peer(link::PeerHandle peer, Status status, base::Instant now) {
  now_ = now;
  deferred_.drop(peer, [&](const Deferred&) { ++counters_.dropped_answers; });
  constexpr std::size_t kUnused = kFlowsMax - kFirstIndex;
  if (free_.size() == kUnused) return;
  for (const auto& flow : flows_) {
    if (flow == nullptr || flow->plan.type != QpType::rc || !flow->has_peer || !(flow->peer == peer)) continue;
    const bool is_waiting = flow->state() == verbs::QpState::rts || flow->state() == verbs::QpState::sqd;
    if (is_waiting && static_cast<std::int32_t>(flow->begun - flow->head) > 0) lose(*flow, status, now);
  }
}

}  // namespace fairlead::qp
