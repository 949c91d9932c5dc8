// New keys for a session in use: a handshake inside it, bound to the one before, with the keys that the keyring has
// now. Its first message is said again until the answer comes; nothing else waits for it (session_keys.hpp). The
// session's initiator begins it; the other end asks for it, by a first message that is empty.
//
// How much keys may do is no bound for what is in flight meanwhile: a peer that answers in time loses nothing. One that
// does not is given up after a while, and keys that have done what no keys should do are not used any more.
//
// Each beginning has a number, which the answerer sees grow: a first message that comes late must not undo a change
// that its sender has gone on from.

#include <algorithm>
#include <new>

#include "base/ensure.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

constexpr std::uint32_t kTimesSaid = 16;            // in vain: then it is begun anew at the next segment
constexpr base::Duration kKeepPreviousFor = 10s;    // in use; a quiet peer's go with idle_release
constexpr base::Duration kPatience = 30s;           // after they should have been changed they are not used any more,
constexpr std::uint64_t kSegmentsOfPatience = 256;  // if so many segments showed that the peer is there

// AES-128-GCM under one key: beyond twice these nothing is sealed, whatever was set (SealSettings).
constexpr std::uint64_t kBytesMost = std::uint64_t{1} << 37, kSegmentsMost = std::uint64_t{1} << 33;

using Number = std::array<std::byte, sizeof(std::uint64_t)>;

}  // namespace

/// After something was sealed: whether the keys have done enough, or too much.
void Link::State::watch_keys(Peer& peer, base::Instant now) {
  SealedSession& session = *peer.sealed;
  const seal::EpochKeys& keys = session.keys.current();
  const base::Duration age = now - session.keyed_at;
  if (session.keys.has_previous() && age >= kKeepPreviousFor) [[unlikely]]
    session.keys.drop_previous();
  if (keys.bytes() < sealing->bytes_max && keys.segments() < sealing->segments_max && age < sealing->age_max) [[likely]]
    return;
  if (session.due_since == base::kNever) {
    session.due_since = now;
    session.segments_when_due = keys.segments();
  }
  if (session.change_at != base::kNever) return;
  session.change_at = now;
  wake_by(peer, now);
}

bool Link::State::are_keys_worn_out(const SealedSession& session, base::Instant now) const {
  const seal::EpochKeys& keys = session.keys.current();
  if (keys.bytes() >= kBytesMost || keys.segments() >= kSegmentsMost) return true;
  // The initiator sees it first, and so can say why.
  const base::Duration patience = session.is_initiator ? kPatience : 2 * kPatience;
  return session.due_since != base::kNever && now - session.due_since >= patience &&
         keys.segments() - session.segments_when_due >= kSegmentsOfPatience;
}

/// The time of `change_at` has come. False if the session is over.
bool Link::State::change_keys(Peer& peer, base::Instant now) {
  SealedSession& session = *peer.sealed;
  session.change_at = base::kNever;
  if (are_keys_worn_out(session, now)) {
    if (strays.size() < kStraysMax) say_close(peer, 0, 1);
    lose(peer, Status::refused, now, true);
    return false;
  }
  if (!session.keys.is_settled()) return true;
  if (session.times_sent >= kTimesSaid) {
    session.change.reset();
    session.times_sent = 0;
    return true;
  }
  if (!session.is_initiator) {
    session.message.size = 0;  // asks for one
  } else {
    if (!session.change && !begin_change(peer)) return true;
  }
  session.owes_message = true;
  session.change_at = now + said_after(session.times_sent);
  if (!peer.control_hook.is_linked()) control.push_back(peer);
  return true;
}

/// False if there is no key for it, or no memory: then it is begun at the next segment.
bool Link::State::begin_change(Peer& peer) try {
  SealedSession& session = *peer.sealed;
  const auto attempt = static_cast<std::uint32_t>(session.change_number++);
  auto handshake = seal::Handshake::begin(*sealing->ring, peer.address, attempt, session.binding, sealing->random);
  if (!handshake) return false;
  Number number;
  wire::store(number.data(), 0, session.change_number);
  session.message.size = number.size() + handshake->overhead(0);
  if (!handshake->write(number, session.message.bytes.data())) return false;
  session.change.emplace(std::move(*handshake));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Link::State::on_rekey(Peer& peer, const wire::Frame& frame, base::Instant now) {
  SealedSession& session = *peer.sealed;
  if (session.is_initiator && frame.payload.empty()) {
    if (!change_budget.take(peer.address, now)) return refuse(Refusal::too_many_handshakes);
    ++counters.rekeys_received;
    if (session.change_at != base::kNever || session.change) return;
    session.change_at = now;
    return wake_by(peer, now);
  }
  const auto ephemeral = seal::Handshake::ephemeral_of(frame.payload);
  if (session.is_initiator || !ephemeral) return refuse(Refusal::bad_handshake);
  if (!session.next_binding || session.changed_by != *ephemeral) {
    if (const auto refusal = answer_rekey(peer, frame, now)) return refuse(*refusal);
    session.changed_by = *ephemeral;
  }
  ++counters.rekeys_received;
  session.owes_message = true;
  if (!peer.control_hook.is_linked()) control.push_back(peer);
}

std::optional<Refusal> Link::State::answer_rekey(Peer& peer, const wire::Frame& frame, base::Instant now) {
  SealedSession& session = *peer.sealed;
  if (!change_budget.take(peer.address, now)) return Refusal::too_many_handshakes;
  Number bytes;
  std::size_t size = 0;
  auto handshake = seal::Handshake::answer(*sealing->ring, peer.address, session.binding, sealing->random,
                                           frame.payload, bytes, size);
  if (!handshake) return refusal_of(handshake.error());
  const auto number = wire::load<std::uint64_t>(bytes.data(), 0);
  if (size != bytes.size() || number <= session.change_number) return Refusal::bad_handshake;
  HandshakeMessage answer;
  answer.size = handshake->overhead(1);
  if (!handshake->write({}, answer.bytes.data())) return Refusal::bad_handshake;
  session.keys.offer(handshake->keys(sealing->maker));
  session.message = answer;
  session.change_number = number;
  session.next_binding = handshake->hash();
  return std::nullopt;
}

void Link::State::on_rekey_answer(Peer& peer, const wire::Frame& frame, base::Instant now) {
  SealedSession& session = *peer.sealed;
  if (!session.change) return refuse(Refusal::bad_handshake);
  seal::Handshake handshake = *session.change;  // one that does not fit must not spoil ours
  if (!handshake.read(frame.payload, {})) return refuse(Refusal::bad_handshake);
  session.keys.advance(handshake.keys(sealing->maker));
  ++counters.rekey_answers_received;
  session.next_binding = handshake.hash();
  session.change.reset();
  session.owes_message = false;
  on_changed(session, now);
  prove(peer);
}

/// Both ends have the new keys.
void Link::State::on_changed(SealedSession& session, base::Instant now) {
  ENSURE(session.next_binding.has_value(), "new keys without their handshake");
  session.binding = *session.next_binding;
  session.next_binding.reset();
  session.keyed_at = now;
  session.times_sent = 0;
  session.change_at = session.due_since = base::kNever;
  ++counters.keys_changed;
}

void Link::State::serve_rekey(Peer& peer, base::Instant now, Train& train) {
  SealedSession& session = *peer.sealed;
  session.owes_message = false;
  ++session.times_sent;
  wire::Header header = header_with_ack(peer, now);
  header.kind = session.is_message_first() ? wire::Kind::rekey : wire::Kind::rekey_answer;
  send_control(peer.address, header, session.message.span(), train);
  hand_out(HandedOut::What::rekey, peer);
  ++(session.is_message_first() ? counters.rekeys_sent : counters.rekey_answers_sent);
  seal_train(peer, now, train);
}

}  // namespace fairlead::link
