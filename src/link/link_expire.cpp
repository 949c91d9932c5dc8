// Timers. Each peer has one entry in `timers`, at the earliest moment that something of it may be due. Deadlines that
// move later leave it where it is: it fires early, finds nothing due and is put where it belongs. So the straight line
// of traffic does not touch the tree, and an idle peer has no entry at all.
//
// Repair without news: after 2 round trips (more if they vary much) and the peer's ACK delay the newest segment is sent
// again (tail probe), for its ACK shows everything that is missing. Then, at timeouts that double, the oldest and the
// newest only: the rest may have arrived, and the answer will tell.

#include <algorithm>
#include <utility>

#include "base/rare.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

constexpr std::uint32_t kAttemptsBeforeGivingUp = 3;  // a host that slept through the time must not give up on waking
constexpr base::Duration kWithoutMemory = 1ms;        // what is due waits so long

}  // namespace

base::Duration Link::State::answer_after(const Peer& peer) const {
  const base::Duration measured =
      peer.round_trip.smoothed() + 4 * peer.round_trip.variation() + wire::to_duration(peer.theirs.ack_after);
  return std::max(options.resend_after_min, measured);
}

base::Duration Link::State::resend_after(const Peer& peer) const {
  const std::uint32_t doublings = std::min(peer.backoff > 1 ? peer.backoff - 1 : 0, 20U);
  return std::min(answer_after(peer) * (1 << doublings), options.resend_after_max);
}

base::Duration Link::State::probe_after(const Peer& peer) const {
  if (peer.backoff != 0 || !peer.round_trip.is_known()) return resend_after(peer);
  const base::Duration round_trip = peer.round_trip.smoothed();
  const base::Duration measured =
      round_trip + std::max(round_trip, 4 * peer.round_trip.variation()) + wire::to_duration(peer.theirs.ack_after);
  // Where segments fall behind, the last one may only be late, and its ACK too.
  const base::Duration lateness = peer.reordering.patience(round_trip) - (round_trip + round_trip / 8);
  return std::min(std::max(options.probe_after_min, measured + lateness), options.resend_after_max);
}

base::Duration Link::State::ask_again_after(const Peer& peer) const {
  return std::max<base::Duration>(5ms, answer_after(peer));
}

base::Duration Link::State::said_after(std::uint32_t times) const {
  return std::min(options.hello_after * (1 << std::min(times, 20U)), options.hello_after_max);
}

void Link::State::wake_by(Peer& peer, base::Instant at) {
  if (at >= peer.timer_at && peer.timer_hook.is_linked()) return;
  peer.timer_hook.unlink();
  peer.timer_at = at;
  timers.insert(peer);
}

base::Instant Link::State::due(const Peer& peer) const {
  base::Instant at = base::kNever;
  if (peer.candidate) at = std::min(at, peer.candidate->since + options.half_open_for);
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
    at = std::min(at, std::max(peer.last_heard, peer.last_sent) + options.idle_release);
  }
  return at;
}

void Link::State::expire(base::Instant now) {
  if (is_crowded() && grants_deadline() <= now) give_grants(now);
  // Every entry is looked at once at most: what is due again at once waits for the next call.
  while (!timers.empty() && timers.begin()->timer_at <= now && notices.size() < kNoticesMax) {
    Peer& peer = *timers.begin();
    peer.timer_hook.unlink();
    peer.timer_at = base::kNever;
    if (!has_room_for_news()) [[unlikely]] {
      wake_by(peer, now + kWithoutMemory);
      continue;
    }
    if (peer.mtu.is_search_due(now) && peer.window.in_flight() != 0) [[unlikely]] {
      peer.mtu.on_timer(std::min(answer_after(peer), options.resend_after_max), now);
      follow_mtu(peer, now);
    }
    watch_for_stall(peer, now);
    if (due(peer) <= now && !on_timer(peer, now)) continue;
    if (const base::Instant next = due(peer); next != base::kNever)
      wake_by(peer, std::max(next, now + base::Duration(1)));
  }
}

/// False if the peer is gone.
bool Link::State::on_timer(Peer& peer, base::Instant now) {
  if (peer.candidate && peer.candidate->since + options.half_open_for <= now) {
    drop_candidate(peer);
    if (!peer.is_known_to_engine) {
      forget(peer);
      return false;
    }
  }
  if ((peer.state == Peer::State::opening || peer.sealed_hello) && peer.hello_at <= now && !greet_again(peer, now))
    return true;
  if (peer.state == Peer::State::open) {
    if (peer.sealed && peer.sealed->change_at <= now && !change_keys(peer, now)) return true;
    if (is_stalled(peer, now)) {
      lose(peer, Status::silent, now, true);
      return true;
    }
    if (peer.mtu.due() <= now) {
      peer.mtu.on_timer(std::min(answer_after(peer), options.resend_after_max), now);
      follow_mtu(peer, now);
    }
    if (peer.loss_at <= now) find_losses(peer, now);
    if (peer.pacer.is_waiting() && peer.pacer.next() <= now) make_ready(peer);
    if (peer.has_asked && peer.window.in_flight() == 0 && peer.asked_at + ask_again_after(peer) <= now) {
      // Nobody answered: the grant may be lost, or there is none to get. One segment goes, and asks again.
      peer.has_asked = false;
      peer.granted = 1;
      make_ready(peer);
    }
    if (peer.window.in_flight() != 0 && peer.last_sent + probe_after(peer) <= now) {
      on_silence(peer, now);
      if (peer.state != Peer::State::open) return true;
    }
    if (peer.ack.is_owed && !peer.ack.is_at_once && peer.ack.due <= now) {
      peer.ack.is_at_once = true;
      if (!peer.ack_hook.is_linked()) acks.push_back(peer);
    }
    if (peer.is_quiet() && (std::max(peer.last_heard, peer.last_sent) + options.idle_release <= now ||
                            base::rare("link: a quiet peer gives its window back early"))) {
      peer.window.release_ring();
      peer.received.release_bitmap();
      peer.reassembly.release_slots();
      peer.parts.reset();
      if (peer.sealed) peer.sealed->keys.drop_previous();
    }
  }
  return true;
}

/// The hello once more, or no more. False if the peer was lost.
bool Link::State::greet_again(Peer& peer, base::Instant now) {
  const bool is_over = now - peer.opening_since >= options.connect_within && peer.hellos >= kAttemptsBeforeGivingUp;
  if (peer.state == Peer::State::open) {
    if (is_over) end_doubt(peer);
    if (is_over) return true;
  } else if (peer.refused_here != seal::Refused::none || is_over) {
    const bool is_refused = peer.refused_here != seal::Refused::none || peer.refused != seal::Refused::none;
    lose(peer, is_refused ? Status::refused : Status::unreachable, now, true);
    return false;
  }
  if (std::exchange(peer.is_other_key_due, false) && peer.state == Peer::State::opening) {
    ++peer.key_attempt;
    peer.sealed_hello.reset();
  }
  ++peer.hellos;
  peer.hello_at = now + hello_after(peer);
  const bool has_hello = !greets_sealed(peer) || peer.sealed_hello || make_sealed_hello(peer, peer.ours, 0);
  if (peer.refused_here != seal::Refused::none) {
    lose(peer, Status::refused, now, true);
    return false;
  }
  if (!has_hello) return true;
  peer.has_shown_cookie = false;
  peer.owes_hello = true;
  if (!peer.control_hook.is_linked()) control.push_back(peer);
  return true;
}

/// Nothing was acknowledged for as long as an ACK may take.
void Link::State::on_silence(Peer& peer, base::Instant now) {
  if (now - peer.last_progress >= options.give_up_after && peer.backoff >= kAttemptsBeforeGivingUp) {
    return lose(peer, Status::silent, now, true);
  }
  peer.last_sent = now;
  const ResendCause cause = peer.backoff == 0 ? ResendCause::probe : ResendCause::timeout;
  ++peer.backoff;
  if (peer.in_flight.empty()) return;  // all that is missing waits to be sent again already
  Segment& newest = peer.in_flight.back();
  Segment& oldest = *peer.window.find(peer.window.oldest());
  if (cause == ResendCause::timeout) {
    ++counters.timeouts;
    if (!oldest.is_waiting && &oldest != &newest) resend(oldest, cause);
  }
  resend(newest, cause);
}

}  // namespace fairlead::link
