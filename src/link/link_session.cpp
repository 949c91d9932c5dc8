// Sessions open, are replaced, and end. See peer.hpp for the states and docs/link.md for who believes whom when.

#include <algorithm>
#include <utility>

#include "base/ensure.hpp"
#include "base/rare.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

// Many peers that greet one at the same moment do not all send it a long probe then.
constexpr base::Duration kProbesSpread = 8ms;

}  // namespace

Half Link::State::new_half() {
  const std::uint64_t token = std::max<std::uint64_t>(tokens.next(), 1);  // zero is none
  return {token, {static_cast<std::uint32_t>(tokens.next())}};
}

wire::Hello Link::State::hello_of(const Peer& peer, const Half& ours) const {
  return {.epoch = epoch,
          .token = ours.token,
          .window_bytes = options.window_bytes,
          .initial_sequence = ours.first,
          .datagram_size_max = options.datagram_size_max,
          .window_segments = options.window_segments,
          .reassembly_slots = options.reassembly_slots,
          .ack_after = wire::to_ticks(options.ack_after),
          .slot = peer.slot};
}

void Link::State::begin_opening(Peer& peer, base::Instant now) {
  peer.state = Peer::State::opening;
  peer.ours = peer.candidate ? peer.candidate->ours : new_half();
  peer.opening_since = now;
  peer.has_no_route = false;
  peer.hellos = 1;
  peer.owes_hello = true;
  peer.cookie = 0;
  peer.has_shown_cookie = false;
  peer.is_greeted = peer.candidate.has_value();
  peer.refused = peer.refused_here = seal::Refused::none;
  peer.hello_at = now + hello_after(peer);
  if (greets_sealed(peer) && !make_sealed_hello(peer, peer.ours, 0)) {
    peer.owes_hello = false;
    if (peer.refused_here != seal::Refused::none) peer.hello_at = now;  // to say so
  }
  if (!peer.control_hook.is_linked()) control.push_back(peer);
  wake_by(peer, peer.hello_at);
}

void Link::State::on_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                           std::uint32_t datagram_size_max) {
  if (is_leaving) return refuse(Refusal::leaving);
  Peer* peer = peers.find(from);
  if (peer != nullptr) peer->is_greeted = true;
  if (cookies.is_ours(frame.header.token, from, frame.payload, now) && !base::rare("link: a cookie is too old"))
    return on_proven_hello(from, frame, now, datagram_size_max);
  ++counters.hellos_received;
  ask_for_cookie(from, frame, now);
}

void Link::State::on_proven_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                                  std::uint32_t datagram_size_max) {
  if (frame.is_sealed() || is_sealed_only(from, peers.find(from))) [[unlikely]]
    return on_sealed_hello(from, frame, now, datagram_size_max);
  Peer* peer = peer_of_hello(from, datagram_size_max, now);
  if (peer == nullptr) return refuse(Refusal::table_full);
  const wire::Hello theirs = wire::read_hello(frame.payload);
  if (peer->state == Peer::State::open && peer->theirs.token == theirs.token) {
    // Our hello_ack was lost, or this is an old copy: either way the same answer does no harm.
    if (!peer->candidate) {
      peer->hello_timestamp = frame.header.timestamp;
      owe_hello_ack(*peer);
    }
  } else if (peer->candidate && peer->candidate->theirs.token == theirs.token) {
    peer->candidate->hello_timestamp = frame.header.timestamp;
    owe_hello_ack(*peer);
  } else {
    offer_candidate(*peer, {half_to_offer(*peer), theirs, frame.header.timestamp, now, nullptr});
  }
  ++counters.hellos_received;
}

/// Who greets us, with a place of its own.
Peer* Link::State::peer_of_hello(const base::SocketAddress& from, std::uint32_t datagram_size_max, base::Instant now) {
  Peer* peer = peers.find(from);
  if (peer != nullptr || base::rare("link: a hello finds no place")) return peer;
  return add_stranger(from, datagram_size_max, now);
}

/// Hellos that cross find both sides opening: each keeps the half it offered, so both come to the same session.
Half Link::State::half_to_offer(const Peer& peer) {
  return peer.state == Peer::State::opening ? peer.ours : new_half();
}

void Link::State::offer_candidate(Peer& peer, Peer::Candidate candidate) {
  if (!peer.candidate) {
    make_room_half_open(peer.address);
    half_open.add(peer);
  }
  const base::Instant since = candidate.since;
  peer.candidate = std::move(candidate);
  wake_by(peer, since + options.half_open_for);
  owe_hello_ack(peer);
}

void Link::State::owe_hello_ack(Peer& peer) {
  peer.owes_hello_ack = true;
  if (!peer.control_hook.is_linked()) control.push_back(peer);
}

void Link::State::on_hello_ack(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now) {
  Peer* peer = find_opening(from, frame.header);
  if (peer == nullptr || base::rare("link: a hello's answer is overheard")) return refuse(Refusal::late_hello_ack);
  if (frame.is_sealed() || greets_sealed(*peer)) [[unlikely]]
    return on_sealed_hello_ack(*peer, frame, now);
  ++counters.hello_acks_received;
  establish(*peer, peer->ours, wire::read_hello(frame.payload), now);
  measure(*peer, frame.header, now);
  // The first segment proves to the peer that we hear it, whether there is data to carry the proof or not.
  owe_ack(*peer, frame, now, false, true);
}

/// The hello goes again with the cookie: at once, but once between two of its repeats, so that one who never takes his
/// own cookies does not make the two of us run in circles.
void Link::State::on_hello_retry(const base::SocketAddress& from, const wire::Frame& frame) {
  Peer* peer = find_opening(from, frame.header);
  if (peer == nullptr) return refuse(Refusal::late_hello_ack);
  ++counters.hello_retries_received;
  peer->cookie = wire::read_retry(frame.payload);
  if (std::exchange(peer->has_shown_cookie, true)) return;
  peer->owes_hello = true;
  if (!peer->control_hook.is_linked()) control.push_back(*peer);
}

/// Whom we ask for a session by the hello that this answers.
Peer* Link::State::find_opening(const base::SocketAddress& from, const wire::Header& header) const {
  Peer* peer = peers.find_slot(header.slot);
  if (peer == nullptr || peer->address != from) return nullptr;
  // A sealed session that is doubted is asked for anew while it is open.
  const bool is_opening = peer->state == Peer::State::opening && peer->ours.token == header.token;
  const bool is_doubted = peer->sealed_hello && peer->sealed_hello->ours.token == header.token;
  return is_opening || is_doubted ? peer : nullptr;
}

void Link::State::on_reset(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now) {
  Peer* peer = peers.find(from);
  // It names the token that our segments carry: nobody off the path can know it.
  if (peer == nullptr || peer->state != Peer::State::open || peer->theirs.token != frame.header.token) {
    return refuse(Refusal::unproven_reset);
  }
  ++counters.resets_received;
  if (peer->sealed) [[unlikely]]
    return doubt(*peer, now);
  peer->last_heard = now;
  lose(*peer, Status::restarted, now, true);
}

void Link::State::promote(Peer& peer, base::Instant now) {
  Peer::Candidate candidate = std::move(*peer.candidate);
  // Whatever was pending in the session before: it is not known how much of it the peer received.
  if (peer.state == Peer::State::open) lose(peer, Status::restarted, now, true);
  if (candidate.sealed) peer.sealed = std::move(candidate.sealed->session);
  establish(peer, candidate.ours, candidate.theirs, now);
  peer.hello_timestamp = candidate.hello_timestamp;
}

void Link::State::establish(Peer& peer, const Half& ours, const wire::Hello& theirs, base::Instant now) {
  ENSURE(peer.sealed || !is_sealed_only(peer.address, nullptr),
         "a session in the clear with {}, which has to be sealed", peer.address.to_string());
  drop_candidate(peer);
  peer.is_known_to_engine = true;
  peer.state = Peer::State::open;
  peer.owes_hello = false;
  peer.sealed_hello.reset();
  peer.tag_bytes = peer.sealed ? static_cast<std::uint32_t>(wire::kTagBytes) : 0;
  counters.sessions_sealed += peer.sealed != nullptr;
  peer.ours = ours;
  peer.theirs = theirs;
  peer.window.open(ours.first, options.window_segments);
  peer.received.open(theirs.initial_sequence, options.window_segments);
  peer.slots_granted = std::min(theirs.reassembly_slots, 64U);
  peer.mtu.open(std::min({peer.path_datagram_max, options.datagram_size_max, theirs.datagram_size_max}),
                now + base::Duration(static_cast<std::int64_t>(ours.token >> 1) % kProbesSpread.count()));
  peer.datagram_size = peer.mtu.size() - peer.tag_bytes;
  follow_mtu(peer, now);

  // Bulk leaves a part of the window to tiny messages, at most a quarter.
  const std::uint32_t segments = std::min(options.window_segments, theirs.window_segments);
  const std::uint64_t bytes = std::min(options.window_bytes, theirs.window_bytes);
  const std::uint32_t reserve = std::min(options.command_reserve, segments / 4);
  const std::uint64_t reserve_bytes = std::min<std::uint64_t>(
      std::uint64_t{reserve} * (options.command_segment_max + options.segment_overhead), bytes / 4);
  peer.segments_limit = {segments, segments - reserve};
  peer.bytes_limit = {bytes, bytes - reserve_bytes};

  // Until the first ACK tells whether others send too, a turn may go.
  peer.granted = std::max(turn_bytes(), std::uint64_t{1});
  const std::uint64_t segment = std::uint64_t{peer.datagram_size} + options.segment_overhead;
  peer.congestion.open(bytes, 2 * segment, std::max<std::uint64_t>(options.inrush_bytes, 4 * segment),
                       std::max<std::uint64_t>(options.first_bytes, 6 * segment));

  peer.last_progress = peer.last_heard = peer.last_sent = now;
  ++counters.sessions_opened;
  notices.push({.kind = Notice::Kind::connected, .peer = PeerTable::handle(peer)});
  make_ready(peer);
}

void Link::State::abandon_segments(Peer& peer, Status status) {
  const auto end_records = [&](Segment& segment) {
    for (std::uint32_t i = 0; i < segment.records; ++i) {
      finish(segment.block->cookies[i], ((segment.outcomes_wanted >> i) & 1) != 0, status);
    }
    hotel.check_out(segment);
  };
  for (SegmentList& queue : peer.queued) {
    while (!queue.empty()) end_records(queue.front());
  }
  peer.queued_messages = peer.queued_segments = {};
  while (peer.window.in_flight() != 0) {
    Segment& segment = *peer.window.find(peer.window.oldest());
    peer.window.remove(segment);
    ++counters.segments_abandoned;
    --counters.segments_in_flight;
    end_records(segment);
  }
  for (MessageList* list : {&peer.messages, &peer.messages_cut}) {
    while (!list->empty()) {
      Message& message = list->front();
      list->pop_front();
      if (!message.is_void) finish(message.cookie, message.wants_outcome, status);
      messages.give(&message);
    }
  }
}

Diagnosis Link::State::diagnose(const Peer& peer, Status status, base::Instant now) const {
  if (peer.has_left) return Diagnosis::left;
  if (peer.state == Peer::State::open && peer.sealed && are_keys_worn_out(*peer.sealed, now))
    return Diagnosis::keys_not_changed;
  if (peer.state == Peer::State::opening && peer.refused_here != seal::Refused::none) return Diagnosis::refused_here;
  if (peer.state == Peer::State::opening && peer.refused != seal::Refused::none) return Diagnosis::refused_there;
  const bool is_greeted = status == Status::unreachable && peer.is_greeted;
  if (status != Status::unreachable && status != Status::silent) return Diagnosis::none;
  if (peer.state == Peer::State::opening && peer.has_no_route) return Diagnosis::no_route;
  const base::Instant since = peer.state == Peer::State::opening ? peer.opening_since : peer.last_progress;
  if (peer.not_let_out_at > since) return Diagnosis::not_let_out;
  if (peer.mtu.is_below_least()) return Diagnosis::too_long;
  const bool is_heard = status == Status::silent && now - peer.last_heard < options.give_up_after / 2;
  if (is_heard && peer.is_message_stuck) return Diagnosis::stuck;
  return is_greeted || is_heard ? Diagnosis::one_direction : Diagnosis::nothing_heard;
}

void Link::State::lose(Peer& peer, Status status, base::Instant now, bool is_told) {
  Notice notice{.kind = Notice::Kind::lost, .peer = PeerTable::handle(peer), .status = status};
  const bool was_open = peer.state == Peer::State::open;
  notice.silent_for = now - (was_open ? peer.last_heard : peer.opening_since);
  notice.resend_after = was_open ? resend_after(peer) : hello_after(peer);
  if (!was_open) {
    peer.is_asked_to_seal = false;  // it was said without proof
    notice.resends = peer.hellos - 1;
  } else if (peer.window.in_flight() != 0) {
    notice.resends = std::max(peer.window.find(peer.window.oldest())->transmissions, 1U) - 1;
  }

  notice.diagnosis = diagnose(peer, status, now);
  notice.refused = notice.diagnosis == Diagnosis::refused_here ? peer.refused_here : peer.refused;

  abandon_segments(peer, status);
  if (peer.reassembly.open_count() != 0) {
    for (std::uint32_t slot = 0; slot < peer.reassembly.slot_count(); ++slot) {
      const Reassembly::Slot closed = peer.reassembly.close(slot);
      if (!closed.is_open) continue;
      notices.push(
          {.kind = Notice::Kind::reassembly_lost, .peer = notice.peer, .status = status, .target = closed.target});
    }
  }
  if (is_told) {
    notices.push(notice);
    ++losses_untold;
  }
  ++counters.sessions_lost;
  close_session(peer);
}

/// Nothing is pending in it.
void Link::State::close_session(Peer& peer) {
  peer.state = Peer::State::closed;
  peer.has_left = false;
  peer.ready_hook.unlink();
  peer.ack_hook.unlink();
  peer.mtu.close();
  leave_grants(peer);
  peer.parts.reset();
  peer.probe_answers_owed = 0;
  if (!peer.candidate) peer.control_hook.unlink();
  peer.owes_hello = false;
  peer.sealed.reset();
  peer.sealed_hello.reset();
  peer.tag_bytes = 0;
  peer.owes_hello_ack = peer.owes_hello_ack && peer.candidate.has_value();
  peer.window.release_ring();
  peer.received.open({}, options.window_segments);
  peer.reassembly.reset();
  peer.messages_open = 0;
  peer.turn_bytes = 0;
  peer.pacer = {};
  peer.slots_taken = 0;
  peer.bytes_in_flight = 0;
  peer.order = peer.order_acked = peer.order_judged = 0;
  peer.round_trip = {};
  peer.reordering = {};
  peer.backoff = 0;
  peer.loss_at = base::kNever;
  peer.stall_look_at = base::kNever;
  peer.ack = {};
  // What the session waited for is over; only a candidate may still have its time.
  peer.timer_hook.unlink();
  peer.timer_at = base::kNever;
  if (const base::Instant at = due(peer); at != base::kNever) wake_by(peer, at);
}

void Link::State::say_close(Peer& peer, std::uint8_t flags, std::uint32_t copies) {
  for (std::uint32_t copy = 0; copy < copies && peer.state == Peer::State::open; ++copy) {
    Stray close{.to = peer.address,
                .kind = wire::Kind::close,
                .flags = flags,
                .slot = peer.theirs.slot,
                .token = peer.theirs.token,
                .ack = peer.received.next(),
                .ack_bitmap = peer.received.bitmap(0)};
    if (peer.sealed) close.sealed = sealed_close(*peer.sealed, close.header());
    if (!has_room_for_news()) return;  // it learns by a reset
    strays.push(close);
  }
}

void Link::State::disconnect(Peer& peer, std::uint8_t flags, std::uint32_t copies, base::Instant now) {
  handed_out.what = HandedOut::What::nothing;
  say_close(peer, flags, copies);
  if (peer.state != Peer::State::closed) lose(peer, Status::canceled, now, false);
  forget(peer);
}

void Link::State::expel(Peer& peer, base::Instant now) {
  handed_out.what = HandedOut::What::nothing;
  if (peer.state != Peer::State::open || !has_room_for_news()) return;  // it will offend again
  reader = {};
  chunk_delivery.reset();
  if (strays.size() < kStraysMax) say_close(peer, 0, 1);  // else it learns by a reset
  lose(peer, Status::refused, now, true);
}

void Link::State::drop_candidate(Peer& peer) {
  if (!peer.candidate) return;
  peer.candidate.reset();
  peer.owes_hello_ack = false;
  half_open.remove(peer);
}

void Link::State::forget(Peer& peer) {
  drop_candidate(peer);
  places.remove(peer);
  peers.remove(peer);
}

}  // namespace fairlead::link
