// Sealed sessions: their hellos carry the two messages of a handshake (docs/seal.md). An attacker on the path can forge
// segments in the clear. So a reset only makes this side ask the peer, and a refusal only explains why a greeting fails
// in the end.

#include <algorithm>
#include <new>
#include <utility>

#include "base/rare.hpp"
#include "link/refusal_of.hpp"
#include "link/sessions.hpp"

namespace fairlead::link {

/// Notes why our hello was refused, according to a sender that has seen it. The hello is still repeated until the
/// timeout; only then is this reason reported to the engine.
void Sessions::on_hello_refused(const base::SocketAddress& from, const wire::Frame& frame) {
  Peer* peer = find_opening(from, frame.header);
  const std::uint64_t reason = wire::read_refused(frame.payload);
  if (peer == nullptr || reason == 0 || reason >= seal::kRefusedKinds)
    return context_.counters.refuse(Refusal::late_hello_ack);
  ++context_.counters.hello_refusals_received;
  const bool is_first = std::exchange(peer->refused, static_cast<seal::Refused>(reason)) == seal::Refused::none;
  if (peer->state != Peer::State::opening) return;
  if (peer->refused == seal::Refused::not_sealed && sealing_ && !peer->sealed_hello && is_first) {
    peer->is_asked_to_seal = true;
    peer->owes_hello = greetings_.make_sealed(*peer, peer->ours, 0);
    if (!peer->owes_hello) return;
    context_.agenda.owe_word(*peer);
  } else if (peer->refused == seal::Refused::wrong_key && peer->sealed_hello) {
    peer->is_other_key_due = true;  // not now: forged refusals must not make us compute a hello for each
  }
}

void Sessions::on_sealed_hello_ack(Peer& peer, const wire::Frame& frame, base::Instant now) {
  if (!frame.is_sealed()) return context_.counters.refuse(Refusal::not_sealed);
  if (!peer.sealed_hello) return context_.counters.refuse(Refusal::unknown_epoch);
  // Hellos that crossed: this side answered the peer's, and that one counts.
  if (peer.candidate && peer.candidate->sealed &&
      peer.candidate->sealed->session->greeted_by < peer.sealed_hello->handshake.ephemeral())
    return context_.counters.refuse(Refusal::late_hello_ack);
  seal::Handshake handshake = peer.sealed_hello->handshake;  // a copy: an answer that does not fit must not spoil ours
  std::array<std::byte, wire::kSealedInnerBytes> inner;
  if (!handshake.read(frame.payload, inner) || greetings_.is_own(wire::read_sealed_inner(inner).hello))
    return context_.counters.refuse(Refusal::bad_handshake);
  if (!wire::is_possible(wire::read_sealed_inner(inner).hello)) {
    ++context_.counters.malformed[static_cast<std::size_t>(wire::DropReason::bad_hello)];
    return;
  }
  const Half ours = peer.sealed_hello->ours;
  auto sealed = std::make_unique<SealedSession>(handshake, sealing_->maker, true, now);
  ++context_.counters.hello_acks_received;
  // The peer has shown that it does not know the session in doubt.
  if (peer.state == Peer::State::open) lose(peer, Status::restarted, now, true);
  peer.sealed = std::move(sealed);
  establish(peer, ours, wire::read_sealed_inner(inner).hello, now);
  context_.agenda.prove(peer);
}

/// Handles a sealed hello that has shown its cookie. Only now is work spent on it.
void Sessions::on_sealed_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                               std::uint32_t datagram_size_max) {
  if (!frame.is_sealed()) return refuse_hello(from, frame, seal::Refused::not_sealed, now);
  if (!sealing_) return refuse_hello(from, frame, seal::Refused::cannot_seal, now);
  const seal::Bytes message = frame.payload.subspan(wire::kSealedHelloBytes);
  const auto ephemeral = seal::Handshake::ephemeral_of(message);
  if (!ephemeral) return refuse_hello(from, frame, seal::Refused::wrong_secret, now);
  Peer* peer = peers_.find(from);
  if (peer != nullptr && is_known_greeting(*peer, *ephemeral)) {
    ++context_.counters.hellos_received;
    return;
  }
  if (!handshake_budget_.take(from, now)) return context_.counters.refuse(Refusal::too_many_handshakes);
  std::array<std::byte, wire::kSealedInnerBytes> bytes;
  std::size_t size = 0;
  auto handshake = seal::Handshake::answer(*sealing_->ring, from, {}, sealing_->random, message, bytes, size);
  if (!handshake) return refuse_hello(from, frame, handshake.error(), now);
  const wire::SealedInner inner = wire::read_sealed_inner(bytes);
  const wire::ReturnAddress shown = wire::read_return_address(frame.payload, true);
  if (size != bytes.size() || !wire::is_possible(inner.hello) || inner.hello.token != shown.token) {
    ++context_.counters.malformed[static_cast<std::size_t>(wire::DropReason::bad_hello)];
    return;
  }
  if (greetings_.is_own(inner.hello)) return context_.counters.refuse(Refusal::bad_handshake);
  peer = peer_of_hello(from, datagram_size_max, now);
  if (peer == nullptr) return context_.counters.refuse(Refusal::table_full);
  // A peer that doubts our candidate has received our answer, so the candidate is its session.
  if (peer->candidate && peer->candidate->sealed && peer->candidate->ours.token == inner.session) promote(*peer, now);
  const bool is_ours = is_of_our_session(*peer, inner);
  if (!is_ours && !offer_sealed_candidate(*peer, inner.hello, *handshake, *ephemeral, now)) {
    context_.counters.refuse(Refusal::no_memory);
  } else {
    ++context_.counters.hellos_received;
  }
  if (is_ours) return context_.agenda.prove(*peer);
  if (!peer->candidate && !peer->is_known_to_engine) places_.forget(*peer);  // or the peer's key was invalid
}

/// Returns whether this hello was answered before, or needs no answer.
bool Sessions::is_known_greeting(Peer& peer, const seal::PublicKey& ephemeral) {
  if (peer.candidate && peer.candidate->sealed && peer.candidate->sealed->session->greeted_by == ephemeral) {
    owe_hello_ack(peer);
    return true;
  }
  if (peer.sealed && !peer.sealed->is_initiator && peer.sealed->greeted_by == ephemeral) return true;
  // Hellos that crossed: the peer's is ignored, since ours will be answered.
  return peer.sealed_hello && peer.sealed_hello->handshake.ephemeral() < ephemeral;
}

/// Returns true if the peer doubts a session that this side has, or its hello crossed ours and came late.
bool Sessions::is_of_our_session(const Peer& peer, const wire::SealedInner& inner) {
  if (peer.state != Peer::State::open || !peer.sealed) return false;
  return inner.session == peer.ours.token || inner.hello.token == peer.theirs.token;
}

/// Returns false if there is no memory.
bool Sessions::offer_sealed_candidate(Peer& peer, const wire::Hello& theirs, seal::Handshake& handshake,
                                      const seal::PublicKey& ephemeral, base::Instant now) try {
  const Half ours = greetings_.half_to_offer(peer);
  auto sealed = greetings_.answer_sealed(peer, ours, handshake, ephemeral, now);
  if (sealed) offer_candidate(peer, {ours, theirs, {}, now, std::move(sealed)});
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Sessions::refuse_hello(const base::SocketAddress& from, const wire::Frame& frame, seal::Refused why,
                            base::Instant now) {
  context_.counters.refuse(refusal_of(why));
  turned_away_ = {.from = from, .why = why, .number = turned_away_.number + 1};
  const wire::ReturnAddress to = wire::read_return_address(frame.payload, frame.is_sealed());
  strangers_.answer({.to = from,
                     .kind = wire::Kind::hello_refused,
                     .slot = to.slot,
                     .token = to.token,
                     .word = static_cast<std::uint64_t>(why)},
                    now);
}

std::unique_ptr<SealedSession> Sessions::restore_sealed(const SealedState& saved) const {
  // Only the responder holds keys that the peer may use from now on, and it knows the handshake that made them.
  const bool is_sound = saved.keys.next.has_value() == saved.next_binding.has_value() &&
                        (!saved.is_initiator || (!saved.keys.next && saved.message.empty())) &&
                        saved.message.size() <= wire::kSealedHandshakeMost;
  return sealing_ && is_sound ? std::make_unique<SealedSession>(saved, sealing_->maker) : nullptr;
}

/// Handles a reset of a sealed session, which any process can send. The peer may have restarted. This side sends a new
/// hello, which names the session. A peer that has the session sends a segment of it, otherwise it answers the hello.
/// Until then the session continues.
void Sessions::doubt(Peer& peer, base::Instant now) {
  if (peer.sealed_hello) return;
  ++context_.counters.resets_doubted;
  if (!greetings_.make_sealed(peer, greetings_.new_half(), peer.theirs.token)) return;
  peer.opening_since = now;
  peer.hellos = 1;
  peer.has_shown_cookie = false;
  peer.owes_hello = true;
  context_.agenda.owe_word(peer);
  peer.hello_at = now + context_.timeouts.hello_after(peer);
  context_.agenda.wake_by(peer, peer.hello_at);
}

void Sessions::end_doubt(Peer& peer) {
  peer.sealed_hello.reset();
  peer.owes_hello = false;
}

SealedClose Sessions::sealed_close(SealedSession& session, const wire::Header& header) {
  SealedClose close;
  std::byte* const to = close.data();
  wire::encode(header, to);
  const seal::SessionKeys::Mark mark = session.keys.next_mark();
  wire::mark_sealed(to, mark.epoch, static_cast<std::uint32_t>(mark.number));
  session.keys.seal(mark, {to, wire::kSegmentHeaderBytes}, {}, to + wire::kSegmentHeaderBytes);
  return close;
}

}  // namespace fairlead::link
