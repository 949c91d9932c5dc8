#include "link/expiry.hpp"

#include <algorithm>
#include <utility>

#include "base/rare.hpp"

namespace fairlead::link {
namespace {

constexpr base::Duration kWithoutMemory = 1ms;  // how long due timers are put off without memory
constexpr std::uint8_t kStallLooks = 4;         // checks within give_up_after

}  // namespace

Expiry::Expiry(LinkContext& context, const Parts& parts)
    : context_(context),
      places_(parts.places),
      grants_(parts.grants),
      sizes_(parts.sizes),
      acks_(parts.acks),
      keys_(parts.keys),
      sessions_(parts.sessions) {}

base::Instant Expiry::next_deadline() {
  TimerQueue& timers = context_.agenda.timers;
  while (!timers.empty() && is_timer_of_settled_ack(*timers.begin())) {
    Peer& peer = *timers.begin();
    peer.timer_hook.unlink();
    peer.timer_at = base::kNever;
    if (const base::Instant due = context_.timeouts.due(peer); due != base::kNever) context_.agenda.wake_by(peer, due);
  }
  return std::min(timers.empty() ? base::kNever : timers.begin()->timer_at, grants_.deadline());
}

/// Returns whether the peer's timer was set for an ACK that has left since, and nothing else is due by then. Nor may
/// the stall watch depend on the timer: it starts when a timer fires.
bool Expiry::is_timer_of_settled_ack(const Peer& peer) const {
  return !peer.ack.is_owed && peer.timer_at == peer.ack.due &&
         (peer.reassembly.open_count() == 0 || peer.stall_look_at != base::kNever) &&
         context_.timeouts.due(peer) > peer.timer_at;
}

void Expiry::expire(base::Instant now) {
  if (grants_.deadline() <= now) grants_.give(now);
  // Each entry is visited at most once: one that is due again at once waits for the next call.
  while (!context_.agenda.timers.empty() && context_.agenda.timers.begin()->timer_at <= now &&
         !context_.news.is_full()) {
    Peer& peer = *context_.agenda.timers.begin();
    peer.timer_hook.unlink();
    peer.timer_at = base::kNever;
    if (!sessions_.has_room_for_news()) [[unlikely]] {
      context_.agenda.wake_by(peer, now + kWithoutMemory);
      continue;
    }
    if (peer.mtu.is_search_due(now) && peer.window.in_flight() != 0) [[unlikely]] {
      sizes_.on_timer(peer, now);
    }
    watch_for_stall(peer, now);
    if (context_.timeouts.due(peer) <= now && !on_timer(peer, now)) continue;
    if (const base::Instant next = context_.timeouts.due(peer); next != base::kNever)
      context_.agenda.wake_by(peer, std::max(next, now + base::Duration(1)));
  }
}

/// Returns false if the peer was forgotten.
bool Expiry::on_timer(Peer& peer, base::Instant now) {
  if (peer.candidate && peer.candidate->since + context_.options.half_open_for <= now) {
    places_.drop_candidate(peer);
    if (!peer.is_known_to_engine) {
      places_.forget(peer);
      return false;
    }
  }
  if ((peer.state == Peer::State::opening || peer.sealed_hello) && peer.hello_at <= now &&
      !sessions_.greet_again(peer, now))
    return true;
  if (peer.state == Peer::State::open) {
    if (peer.sealed && peer.sealed->change_at <= now) {
      if (KeyChanges::are_worn_out(*peer.sealed, now)) {
        sessions_.end_worn_out(peer, now);
        return true;
      }
      keys_.change(peer, now);
    }
    if (is_stalled(peer, now)) {
      sessions_.lose(peer, Status::silent, now, true);
      return true;
    }
    if (peer.mtu.due() <= now) {
      sizes_.on_timer(peer, now);
    }
    if (peer.loss_at <= now) acks_.find_losses(peer, now);
    if (peer.pacer.is_waiting() && peer.pacer.next() <= now) context_.agenda.make_ready(peer);
    if (peer.has_asked && peer.window.in_flight() == 0 &&
        peer.asked_at + context_.timeouts.ask_again_after(peer) <= now) {
      // No answer: the grant may be lost, or there is none to give. One segment leaves, and asks again.
      peer.has_asked = false;
      peer.granted = 1;
      context_.agenda.make_ready(peer);
    }
    if (peer.window.in_flight() != 0 && peer.last_sent + context_.timeouts.probe_after(peer) <= now) {
      on_silence(peer, now);
      if (peer.state != Peer::State::open) return true;
    }
    if (peer.ack.is_owed && !peer.ack.is_at_once && peer.ack.due <= now) {
      context_.agenda.answer_at_once(peer);
    }
    if (peer.is_quiet() && (std::max(peer.last_heard, peer.last_sent) + context_.options.idle_release <= now ||
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

/// Handles missing ACKs: nothing was acknowledged for as long as an ACK may take.
void Expiry::on_silence(Peer& peer, base::Instant now) {
  if (now - peer.last_progress >= context_.options.give_up_after && peer.backoff >= Timeouts::kAttemptsLeast) {
    return sessions_.lose(peer, Status::silent, now, true);
  }
  peer.last_sent = now;
  const ResendCause cause = peer.backoff == 0 ? ResendCause::probe : ResendCause::timeout;
  ++peer.backoff;
  if (peer.in_flight.empty()) return;  // all that is missing waits for its resend already
  Segment& newest = peer.in_flight.back();
  Segment& oldest = *peer.window.find(peer.window.oldest());
  if (cause == ResendCause::timeout) {
    ++context_.counters.timeouts;
    if (!oldest.is_waiting && &oldest != &newest) context_.agenda.resend(oldest, cause);
  }
  context_.agenda.resend(newest, cause);
}

/// Starts the checks when something opens, and stops them when nothing is open.
void Expiry::watch_for_stall(Peer& peer, base::Instant now) const {
  if (peer.window.in_flight() == 0 && peer.reassembly.open_count() == 0) {
    peer.stall_look_at = base::kNever;
  } else if (peer.stall_look_at == base::kNever) {
    peer.stall_look_at = now + context_.options.give_up_after / kStallLooks;
    peer.oldest_seen = peer.window.oldest();
    peer.stalled_looks = 0;
  }
}

/// Returns whether one of the open items has not moved for kStallLooks checks.
bool Expiry::is_stalled(Peer& peer, base::Instant now) const {
  if (peer.stall_look_at > now) return false;
  peer.stall_look_at = now + context_.options.give_up_after / kStallLooks;
  const bool is_same = peer.window.in_flight() != 0 && peer.window.oldest() == peer.oldest_seen;
  peer.oldest_seen = peer.window.oldest();
  peer.stalled_looks = is_same ? static_cast<std::uint8_t>(peer.stalled_looks + 1) : 0;
  peer.is_message_stuck = peer.reassembly.look() > kStallLooks;  // the first check may have come at once
  return peer.is_message_stuck || peer.stalled_looks >= kStallLooks;
}

}  // namespace fairlead::link
