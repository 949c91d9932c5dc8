#include "link/timeouts.hpp"

#include <algorithm>

namespace fairlead::link {

base::Duration Timeouts::answer_after(const Peer& peer) const {
  const base::Duration measured =
      peer.round_trip.smoothed() + 4 * peer.round_trip.variation() + wire::to_duration(peer.theirs.ack_after);
  return std::max(options_.resend_after_min, measured);
}

base::Duration Timeouts::resend_after(const Peer& peer) const {
  const std::uint32_t doublings = std::min(peer.backoff > 1 ? peer.backoff - 1 : 0, 20U);
  return std::min(answer_after(peer) * (1 << doublings), options_.resend_after_max);
}

base::Duration Timeouts::probe_after(const Peer& peer) const {
  if (peer.backoff != 0 || !peer.round_trip.is_known()) return resend_after(peer);
  const base::Duration round_trip = peer.round_trip.smoothed();
  const base::Duration measured =
      round_trip + std::max(round_trip, 4 * peer.round_trip.variation()) + wire::to_duration(peer.theirs.ack_after);
  // On a path that reorders, the last segment or its ACK may only be late.
  const base::Duration lateness = peer.reordering.patience(round_trip) - (round_trip + round_trip / 8);
  return std::min(std::max(options_.probe_after_min, measured + lateness), options_.resend_after_max);
}

base::Duration Timeouts::ask_again_after(const Peer& peer) const {
  return std::max<base::Duration>(5ms, answer_after(peer));
}

base::Duration Timeouts::said_after(std::uint32_t times) const {
  return std::min(options_.hello_after * (1 << std::min(times, 20U)), options_.hello_after_max);
}

base::Instant Timeouts::due(const Peer& peer) const {
  base::Instant at = base::kNever;
  if (peer.candidate) at = std::min(at, peer.candidate->since + options_.half_open_for);
  if (peer.state == Peer::State::opening || peer.sealed_hello) at = std::min(at, peer.hello_at);
  if (peer.state != Peer::State::open) return at;
  if (peer.sealed) at = std::min(at, peer.sealed->change_at);
  if (peer.window.in_flight() != 0) {
    at = std::min(at, peer.last_sent + probe_after(peer));
  } else if (peer.has_asked) {
    at = std::min(at, peer.asked_at + ask_again_after(peer));
  }
  at = std::min({at, peer.loss_at, peer.mtu.due(), peer.stall_look_at});
  if (peer.pacer.is_waiting() && !peer.ready_hook.is_linked() && peer.has_bulk_queued()) [[unlikely]]
    at = std::min(at, peer.pacer.next());
  if (peer.ack.is_owed && !peer.ack.is_at_once) at = std::min(at, peer.ack.due);
  if (peer.has_storage() && peer.is_quiet()) {
    at = std::min(at, std::max(peer.last_heard, peer.last_sent) + options_.idle_release);
  }
  return at;
}

}  // namespace fairlead::link
