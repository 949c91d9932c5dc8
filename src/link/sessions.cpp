#include "link/sessions.hpp"

#include <algorithm>
#include <utility>

#include "base/ensure.hpp"
#include "base/rare.hpp"
#include "link/key_changes.hpp"

namespace fairlead::link {
namespace {

// Spreads the first long probes: many peers that greet one host at the same moment do not all send theirs then.
constexpr base::Duration kProbesSpread = 8ms;
constexpr std::uint32_t kCloseCopies = 2;  // of a close to a forgotten peer, because it is not repeated

}  // namespace

Sessions::Sessions(LinkContext& context, const Parts& parts, std::optional<SealSettings>& sealing, TokenSource& secrets)
    : context_(context),
      peers_(parts.peers),
      places_(parts.places),
      greetings_(parts.greetings),
      strangers_(parts.strangers),
      queues_(parts.queues),
      grants_(parts.grants),
      sizes_(parts.sizes),
      acks_(parts.acks),
      sealing_(sealing),
      handshake_budget_(secrets.next_key(), context.options.handshakes_each_per_second,
                        context.options.handshakes_per_second) {}

bool Sessions::has_room_for_news() noexcept {
  constexpr std::size_t kLost = 2, kOthers = 8;
  return context_.news.has_room_for_notices(kLost * context_.options.reassembly_slots + kOthers) &&
         strangers_.has_room_for(kOthers);
}

Peer* Sessions::add_peer(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now) {
  places_.sweep(now);
  if (places_.is_scarce()) make_room(address, now);
  Peer* peer = places_.add(address, now);
  if (peer == nullptr) return nullptr;
  peer->path_datagram_max = datagram_size_max;
  sizes_.set_goal(*peer, {});
  return peer;
}

void Sessions::make_room(const base::SocketAddress& address, base::Instant now) {
  Peer* const hog = places_.make_room(address, now);
  if (hog == nullptr) return;
  lose(*hog, Status::refused, now, true);
  places_.let_go(*hog);
}

/// Adds a peer that greets us. The peers of one host may take half of the table.
Peer* Sessions::add_stranger(const base::SocketAddress& address, std::uint32_t datagram_size_max, base::Instant now) {
  if (places_.is_half_held_by(address)) {
    make_room(address, now);
    return nullptr;
  }
  return add_peer(address, datagram_size_max, now);
}

bool Sessions::forget_unused(PeerHandle handle) {
  Peer* peer = peers_.find(handle);
  if (peer == nullptr) return false;
  if (!places_.is_free_of_us(*peer) || !peer->is_quiet()) {
    places_.keep(*peer);
    return false;
  }
  say_close(*peer, wire::Flags::kIdle, kCloseCopies);
  places_.forget(*peer);
  ++context_.counters.peers_forgotten;
  return true;
}

void Sessions::begin_opening(Peer& peer, base::Instant now) {
  peer.state = Peer::State::opening;
  peer.ours = peer.candidate ? peer.candidate->ours : greetings_.new_half();
  peer.opening_since = now;
  peer.hindrance.reset();
  peer.hellos = 1;
  peer.owes_hello = true;
  peer.cookie = 0;
  peer.has_shown_cookie = false;
  peer.is_greeted = peer.candidate.has_value();
  peer.refused = peer.refused_here = seal::Refused::none;
  peer.hello_at = now + context_.timeouts.hello_after(peer);
  if (greetings_.are_sealed_to(peer) && !greetings_.make_sealed(peer, peer.ours, 0)) {
    peer.owes_hello = false;
    if (peer.refused_here != seal::Refused::none) peer.hello_at = now;  // greet_again() then reports the loss
  }
  context_.agenda.owe_word(peer);
  context_.agenda.wake_by(peer, peer.hello_at);
}

void Sessions::on_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                        std::uint32_t datagram_size_max) {
  if (is_leaving_) return context_.counters.refuse(Refusal::leaving);
  Peer* peer = peers_.find(from);
  if (peer != nullptr) peer->is_greeted = true;
  if (strangers_.is_proven(from, frame, now) && !base::rare("link: a cookie is too old")) {
    on_proven_hello(from, frame, now, datagram_size_max);
    peer = peers_.find(from);
    if (peer != nullptr) peer->introduction = greetings_.read_introduction(frame.header, from);
    return;
  }
  ++context_.counters.hellos_received;
  strangers_.ask_for_cookie(from, frame, now);
}

void Sessions::on_proven_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                               std::uint32_t datagram_size_max) {
  if (frame.is_sealed() || greetings_.is_sealed_only(from, peers_.find(from))) [[unlikely]]
    return on_sealed_hello(from, frame, now, datagram_size_max);
  Peer* peer = peer_of_hello(from, datagram_size_max, now);
  if (peer == nullptr) return context_.counters.refuse(Refusal::table_full);
  const wire::Hello theirs = wire::read_hello(frame.payload);
  if (peer->state == Peer::State::open && peer->theirs.token == theirs.token) {
    // Our hello_ack was lost, or this is an old copy. In both cases the same answer does no harm.
    if (!peer->candidate) {
      peer->hello_timestamp = frame.header.timestamp;
      owe_hello_ack(*peer);
    }
  } else if (peer->candidate && peer->candidate->theirs.token == theirs.token) {
    peer->candidate->hello_timestamp = frame.header.timestamp;
    owe_hello_ack(*peer);
  } else {
    offer_candidate(*peer, {greetings_.half_to_offer(*peer), theirs, frame.header.timestamp, now, nullptr});
  }
  ++context_.counters.hellos_received;
}

/// Returns the peer that greets us; adds it if it is new. Null if there is no place for it.
Peer* Sessions::peer_of_hello(const base::SocketAddress& from, std::uint32_t datagram_size_max, base::Instant now) {
  Peer* peer = peers_.find(from);
  if (peer != nullptr || base::rare("link: a hello finds no place")) return peer;
  return add_stranger(from, datagram_size_max, now);
}

void Sessions::offer_candidate(Peer& peer, Peer::Candidate candidate) {
  const base::Instant since = candidate.since;
  places_.offer(peer, std::move(candidate));
  context_.agenda.wake_by(peer, since + context_.options.half_open_for);
  owe_hello_ack(peer);
}

void Sessions::owe_hello_ack(Peer& peer) {
  peer.owes_hello_ack = true;
  context_.agenda.owe_word(peer);
}

void Sessions::on_hello_ack(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now) {
  Peer* peer = find_opening(from, frame.header);
  if (peer == nullptr || base::rare("link: a hello's answer is overheard"))
    return context_.counters.refuse(Refusal::late_hello_ack);
  peer->introduction = greetings_.read_introduction(frame.header, from);
  if (frame.is_sealed() || greetings_.are_sealed_to(*peer)) [[unlikely]]
    return on_sealed_hello_ack(*peer, frame, now);
  ++context_.counters.hello_acks_received;
  establish(*peer, peer->ours, wire::read_hello(frame.payload), now);
  acks_.measure(*peer, frame.header, now);
  // The first segment proves to the peer that this side hears it. It goes at once, with or without data.
  acks_.owe(*peer, frame, now, false, AckUrgency::at_once);
}

/// Repeats the hello with the cookie: at once, but once between two regular repeats. So a peer that rejects its own
/// cookies cannot start an endless exchange.
void Sessions::on_hello_retry(const base::SocketAddress& from, const wire::Frame& frame) {
  Peer* peer = find_opening(from, frame.header);
  if (peer == nullptr) return context_.counters.refuse(Refusal::late_hello_ack);
  ++context_.counters.hello_retries_received;
  peer->cookie = wire::read_retry(frame.payload);
  if (std::exchange(peer->has_shown_cookie, true)) return;
  peer->owes_hello = true;
  context_.agenda.owe_word(*peer);
}

/// Returns the peer whose hello this segment answers; null if there is none.
Peer* Sessions::find_opening(const base::SocketAddress& from, const wire::Header& header) const {
  Peer* peer = peers_.find_slot(header.slot);
  if (peer == nullptr || peer->address != from) return nullptr;
  // While a sealed session is in doubt, it is open and a new hello is out.
  const bool is_opening = peer->state == Peer::State::opening && peer->ours.token == header.token;
  const bool is_doubted = peer->sealed_hello && peer->sealed_hello->ours.token == header.token;
  return is_opening || is_doubted ? peer : nullptr;
}

bool Sessions::greet_again(Peer& peer, base::Instant now) {
  const bool is_over =
      now - peer.opening_since >= context_.options.connect_within && peer.hellos >= Timeouts::kAttemptsLeast;
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
  peer.hello_at = now + context_.timeouts.hello_after(peer);
  const bool has_hello =
      !greetings_.are_sealed_to(peer) || peer.sealed_hello || greetings_.make_sealed(peer, peer.ours, 0);
  if (peer.refused_here != seal::Refused::none) {
    lose(peer, Status::refused, now, true);
    return false;
  }
  if (!has_hello) return true;
  peer.has_shown_cookie = false;
  peer.owes_hello = true;
  context_.agenda.owe_word(peer);
  return true;
}

void Sessions::on_reset(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now) {
  Peer* peer = peers_.find(from);
  // A valid reset names the token that our segments carry, which nobody off the path can know.
  if (peer == nullptr || peer->state != Peer::State::open || peer->theirs.token != frame.header.token) {
    return context_.counters.refuse(Refusal::unproven_reset);
  }
  ++context_.counters.resets_received;
  if (peer->sealed) [[unlikely]]
    return doubt(*peer, now);
  peer->last_heard = now;
  lose(*peer, Status::restarted, now, true);
}

void Sessions::promote(Peer& peer, base::Instant now) {
  Peer::Candidate candidate = std::move(*peer.candidate);
  // It is unknown how much of the previous session's pending messages the peer received.
  if (peer.state == Peer::State::open) lose(peer, Status::restarted, now, true);
  if (candidate.sealed) peer.sealed = std::move(candidate.sealed->session);
  establish(peer, candidate.ours, candidate.theirs, now);
  peer.hello_timestamp = candidate.hello_timestamp;
}

void Sessions::establish(Peer& peer, const Half& ours, const wire::Hello& theirs, base::Instant now) {
  ENSURE(peer.sealed || !greetings_.is_sealed_only(peer.address, nullptr),
         "a session in the clear with {}, which has to be sealed", peer.address.to_string());
  places_.drop_candidate(peer);
  peer.is_known_to_engine = true;
  peer.state = Peer::State::open;
  peer.owes_hello = false;
  peer.sealed_hello.reset();
  peer.tag_bytes = peer.sealed ? static_cast<std::uint32_t>(wire::kTagBytes) : 0;
  context_.counters.sessions_sealed += peer.sealed != nullptr;
  peer.ours = ours;
  peer.theirs = theirs;
  peer.window.open(ours.first, context_.options.window_segments);
  peer.received.open(theirs.initial_sequence, context_.options.window_segments);
  peer.slots_granted = std::min(theirs.reassembly_slots, 64U);
  peer.mtu.open(std::min({peer.path_datagram_max, context_.options.datagram_size_max, theirs.datagram_size_max}),
                now + base::Duration(static_cast<std::int64_t>(ours.token >> 1) % kProbesSpread.count()));
  peer.datagram_size = peer.mtu.size() - peer.tag_bytes;
  sizes_.follow(peer, now);

  // Bulk leaves a part of the window to tiny messages, at most a quarter.
  const std::uint32_t segments = std::min(context_.options.window_segments, theirs.window_segments);
  const std::uint64_t bytes = std::min(context_.options.window_bytes, theirs.window_bytes);
  const std::uint32_t reserve = std::min(context_.options.command_reserve, segments / 4);
  const std::uint64_t reserve_bytes = std::min<std::uint64_t>(
      std::uint64_t{reserve} * (context_.options.command_segment_max + context_.options.segment_overhead), bytes / 4);
  peer.segments_limit = {segments, segments - reserve};
  peer.bytes_limit = {bytes, bytes - reserve_bytes};

  // One turn may leave before the first ACK tells whether other senders are active.
  peer.granted = std::max(grants_.turn_bytes(), std::uint64_t{1});
  const std::uint64_t segment = std::uint64_t{peer.datagram_size} + context_.options.segment_overhead;
  peer.congestion.open(bytes, 2 * segment, std::max<std::uint64_t>(context_.options.inrush_bytes, 4 * segment),
                       std::max<std::uint64_t>(context_.options.first_bytes, 6 * segment));

  peer.last_progress = peer.last_heard = peer.last_sent = now;
  ++context_.counters.sessions_opened;
  context_.news.tell({.kind = Notice::Kind::connected, .peer = PeerTable::handle(peer)});
  context_.agenda.make_ready(peer);
}

bool Sessions::restore(Peer& peer, const SessionState& session, base::Instant now) {
  if (!wire::is_possible(session.theirs)) return false;
  if (session.sealed && !(peer.sealed = restore_sealed(*session.sealed))) return false;
  establish(peer, session.ours, session.theirs, now);
  peer.hello_timestamp = session.hello_timestamp;
  peer.message_number = session.message_number;
  peer.window.open(session.to_send, context_.options.window_segments);
  peer.received.open(session.to_receive, context_.options.window_segments);
  for (const wire::Sequence sequence : session.ahead) {
    const bool is_next = sequence == session.to_receive;
    if (is_next || peer.received.judge(sequence) != ReceiveWindow::Verdict::fresh) return false;
    peer.received.mark(sequence);
  }
  if (!session.slots.empty() && !peer.reassembly.restore(session.slots)) return false;
  context_.agenda.prove(peer);  // repeats the ACK, in case the last one was not sent
  if (!peer.sealed) return true;
  if (peer.sealed->owes_message) context_.agenda.owe_word(peer);
  context_.agenda.wake_by(peer, peer.sealed->change_at);
  return true;
}

bool Sessions::restore(Peer& peer, const CandidateState& candidate, base::Instant now) {
  if (!wire::is_possible(candidate.theirs)) return false;
  std::unique_ptr<SealedCandidate> sealed;
  if (candidate.sealed) {
    sealed = std::make_unique<SealedCandidate>();
    sealed->session = restore_sealed(*candidate.sealed);
    if (!sealed->session || candidate.answer.size() > sealed->answer.bytes.size()) return false;
    std::ranges::copy(candidate.answer, sealed->answer.bytes.begin());
    sealed->answer.size = candidate.answer.size();
  }
  offer_candidate(peer, {candidate.ours, candidate.theirs, candidate.hello_timestamp, now, std::move(sealed)});
  return true;
}

Diagnosis Sessions::diagnose(const Peer& peer, Status status, base::Instant now) const {
  if (peer.has_left) return Diagnosis::left;
  if (peer.state == Peer::State::open && peer.sealed && KeyChanges::are_worn_out(*peer.sealed, now))
    return Diagnosis::keys_not_changed;
  if (peer.state == Peer::State::opening && peer.refused_here != seal::Refused::none) return Diagnosis::refused_here;
  if (peer.state == Peer::State::opening && peer.refused != seal::Refused::none) return Diagnosis::refused_there;
  const bool is_greeted = status == Status::unreachable && peer.is_greeted;
  if (status != Status::unreachable && status != Status::silent) return Diagnosis::none;
  const bool is_hindered = peer.is_hindered();
  if (is_hindered && peer.hindrance->is_certain())
    return peer.hindrance->what == Obstacle::not_let_out ? Diagnosis::not_let_out : Diagnosis::not_sent;
  if (is_hindered && peer.state == Peer::State::opening) {
    if (peer.hindrance->what == Obstacle::no_route) return Diagnosis::no_route;
    if (peer.hindrance->what == Obstacle::prohibited) return Diagnosis::prohibited;
  }
  if (peer.mtu.is_below_least()) return Diagnosis::too_long;
  const bool is_heard = status == Status::silent && now - peer.last_heard < context_.options.give_up_after / 2;
  if (is_heard && peer.is_message_stuck) return Diagnosis::stuck;
  if (is_greeted || is_heard) return Diagnosis::one_direction;
  return is_hindered ? Diagnosis::told_by_icmp : Diagnosis::nothing_heard;
}

void Sessions::lose(Peer& peer, Status status, base::Instant now, bool is_told) {
  Notice notice{.kind = Notice::Kind::lost, .peer = PeerTable::handle(peer), .status = status};
  const bool was_open = peer.state == Peer::State::open;
  notice.silent_for = now - (was_open ? peer.last_heard : peer.opening_since);
  notice.resend_after = was_open ? context_.timeouts.resend_after(peer) : context_.timeouts.hello_after(peer);
  if (!was_open) {
    peer.is_asked_to_seal = false;  // it was an unproven claim
    notice.resends = peer.hellos - 1;
  } else if (peer.window.in_flight() != 0) {
    notice.resends = std::max(peer.window.find(peer.window.oldest())->transmissions, 1U) - 1;
  }

  notice.diagnosis = diagnose(peer, status, now);
  if (peer.hindrance) {
    notice.obstacle = peer.hindrance->what;
    notice.send_errno = peer.hindrance->send_errno;
  }
  notice.refused = notice.diagnosis == Diagnosis::refused_here ? peer.refused_here : peer.refused;

  queues_.abandon(peer, status);
  if (peer.reassembly.open_count() != 0) {
    for (std::uint32_t slot = 0; slot < peer.reassembly.slot_count(); ++slot) {
      const Reassembly::Slot closed = peer.reassembly.close(slot);
      if (!closed.is_open) continue;
      context_.news.tell(
          {.kind = Notice::Kind::reassembly_lost, .peer = notice.peer, .status = status, .target = closed.target});
    }
  }
  if (is_told) context_.news.tell(notice);
  ++context_.counters.sessions_lost;
  close_session(peer);
}

/// Closes a session in which nothing is pending any more.
void Sessions::close_session(Peer& peer) {
  peer.state = Peer::State::closed;
  peer.has_left = false;
  peer.ready_hook.unlink();
  peer.ack_hook.unlink();
  peer.mtu.close();
  grants_.leave(peer);
  peer.parts.reset();
  peer.probe_answers_owed = 0;
  if (!peer.candidate) peer.control_hook.unlink();
  peer.owes_hello = false;
  peer.sealed.reset();
  peer.sealed_hello.reset();
  peer.tag_bytes = 0;
  peer.owes_hello_ack = peer.owes_hello_ack && peer.candidate.has_value();
  peer.window.release_ring();
  peer.received.open({}, context_.options.window_segments);
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
  // The session's deadlines are over; only a candidate may still have one.
  peer.timer_hook.unlink();
  peer.timer_at = base::kNever;
  if (const base::Instant at = context_.timeouts.due(peer); at != base::kNever) context_.agenda.wake_by(peer, at);
}

void Sessions::say_close(Peer& peer, std::uint8_t flags, std::uint32_t copies) {
  for (std::uint32_t copy = 0; copy < copies && peer.state == Peer::State::open; ++copy) {
    Stray close{.to = peer.address,
                .kind = wire::Kind::close,
                .flags = flags,
                .slot = peer.theirs.slot,
                .token = peer.theirs.token,
                .ack = peer.received.next(),
                .ack_bitmap = peer.received.bitmap(0)};
    if (peer.sealed) close.sealed = sealed_close(*peer.sealed, close.header());
    if (!has_room_for_news()) return;  // the peer learns by a reset
    strangers_.put(close);
  }
}

void Sessions::on_close(Peer& peer, const wire::Frame& frame, base::Instant now) {
  ++context_.counters.closes_received;
  if ((frame.header.flags & wire::Flags::kIdle) != 0 && Places::is_free_of_us(peer) && peer.is_quiet()) {
    close_session(peer);
    return places_.let_go(peer);
  }
  if ((frame.header.flags & wire::Flags::kLeaves) != 0) {
    peer.has_left = true;
    if (!strangers_.is_full()) say_close(peer, 0, 1);  // the answer to its close, so that it may go
  }
  lose(peer, Status::refused, now, true);
}

void Sessions::end_worn_out(Peer& peer, base::Instant now) {
  if (!strangers_.is_full()) say_close(peer, 0, 1);
  lose(peer, Status::refused, now, true);
}

void Sessions::disconnect(Peer& peer, std::uint8_t flags, std::uint32_t copies, base::Instant now) {
  say_close(peer, flags, copies);
  if (peer.state != Peer::State::closed) lose(peer, Status::canceled, now, false);
  places_.forget(peer);
}

bool Sessions::expel(Peer& peer, base::Instant now) {
  if (peer.state != Peer::State::open || !has_room_for_news()) return false;
  if (!strangers_.is_full()) say_close(peer, 0, 1);  // otherwise the peer learns by a reset
  lose(peer, Status::refused, now, true);
  return true;
}

std::size_t Sessions::take_leave() {
  is_leaving_ = true;
  std::size_t unheard = 0;
  for (std::uint32_t slot = 0; slot < peers_.slots(); ++slot) {
    Peer* const peer = peers_.at(slot);
    if (peer == nullptr || peer->state != Peer::State::open) continue;
    ++unheard;
    if (!strangers_.is_full()) say_close(*peer, wire::Flags::kLeaves, 1);
  }
  return unheard;
}

}  // namespace fairlead::link
