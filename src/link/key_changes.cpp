#include "link/key_changes.hpp"

#include <algorithm>
#include <new>

#include "base/ensure.hpp"
#include "link/refusal_of.hpp"

namespace fairlead::link {
namespace {

constexpr std::uint32_t kTimesSaid = 16;  // repeats without an answer; then the next segment starts a new change
constexpr base::Duration kKeepPreviousFor = 10s;    // while in use; those of a quiet peer go after idle_release
constexpr base::Duration kPatience = 30s;           // keys that are overdue for so long are not used any more,
constexpr std::uint64_t kSegmentsOfPatience = 256;  // provided that so many segments showed that the peer is alive

// Absolute limits of AES-128-GCM under one key. Nothing is sealed beyond them, whatever SealSettings says.
constexpr std::uint64_t kBytesMost = std::uint64_t{1} << 37, kSegmentsMost = std::uint64_t{1} << 33;

using Number = std::array<std::byte, sizeof(std::uint64_t)>;

}  // namespace

KeyChanges::KeyChanges(LinkContext& context, std::optional<SealSettings>& sealing, TokenSource& secrets)
    : context_(context),
      sealing_(sealing),
      budget_(secrets.next_key(), context.options.handshakes_each_per_second, context.options.handshakes_per_second) {}

void KeyChanges::watch(Peer& peer, base::Instant now) {
  SealedSession& session = *peer.sealed;
  const seal::EpochKeys& keys = session.keys.current();
  const base::Duration age = now - session.keyed_at;
  if (session.keys.has_previous() && age >= kKeepPreviousFor) [[unlikely]]
    session.keys.drop_previous();
  if (keys.bytes() < sealing_->bytes_max && keys.segments() < sealing_->segments_max && age < sealing_->age_max)
      [[likely]]
    return;
  if (session.due_since == base::kNever) {
    session.due_since = now;
    session.segments_when_due = keys.segments();
  }
  if (session.change_at != base::kNever) return;
  session.change_at = now;
  context_.agenda.wake_by(peer, now);
}

bool KeyChanges::are_worn_out(const SealedSession& session, base::Instant now) {
  const seal::EpochKeys& keys = session.keys.current();
  if (keys.bytes() >= kBytesMost || keys.segments() >= kSegmentsMost) return true;
  // The initiator's patience ends first, so that it can report the cause.
  const base::Duration patience = session.is_initiator ? kPatience : 2 * kPatience;
  return session.due_since != base::kNever && now - session.due_since >= patience &&
         keys.segments() - session.segments_when_due >= kSegmentsOfPatience;
}

void KeyChanges::change(Peer& peer, base::Instant now) {
  SealedSession& session = *peer.sealed;
  session.change_at = base::kNever;
  if (!session.keys.is_settled()) return;
  if (session.times_sent >= kTimesSaid) {
    session.change.reset();
    session.times_sent = 0;
    return;
  }
  if (!session.is_initiator) {
    session.message.size = 0;  // an empty message asks the initiator for a change
  } else {
    if (!session.change && !begin(peer)) return;
  }
  session.owes_message = true;
  session.change_at = now + context_.timeouts.said_after(session.times_sent);
  context_.agenda.owe_word(peer);
  return;
}

/// Returns false if there is no key for the peer, or no memory; the next segment then tries again.
bool KeyChanges::begin(Peer& peer) try {
  SealedSession& session = *peer.sealed;
  const auto attempt = static_cast<std::uint32_t>(session.change_number++);
  auto handshake = seal::Handshake::begin(*sealing_->ring, peer.address, attempt, session.binding, sealing_->random);
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

void KeyChanges::on_rekey(Peer& peer, const wire::Frame& frame, base::Instant now) {
  SealedSession& session = *peer.sealed;
  if (session.is_initiator && frame.payload.empty()) {
    if (!budget_.take(peer.address, now)) return context_.counters.refuse(Refusal::too_many_handshakes);
    ++context_.counters.rekeys_received;
    if (session.change_at != base::kNever || session.change) return;
    session.change_at = now;
    return context_.agenda.wake_by(peer, now);
  }
  const auto ephemeral = seal::Handshake::ephemeral_of(frame.payload);
  if (session.is_initiator || !ephemeral) return context_.counters.refuse(Refusal::bad_handshake);
  if (!session.next_binding || session.changed_by != *ephemeral) {
    if (const auto refusal = answer(peer, frame, now)) return context_.counters.refuse(*refusal);
    session.changed_by = *ephemeral;
  }
  ++context_.counters.rekeys_received;
  session.owes_message = true;
  context_.agenda.owe_word(peer);
}

std::optional<Refusal> KeyChanges::answer(Peer& peer, const wire::Frame& frame, base::Instant now) {
  SealedSession& session = *peer.sealed;
  if (!budget_.take(peer.address, now)) return Refusal::too_many_handshakes;
  Number bytes;
  std::size_t size = 0;
  auto handshake = seal::Handshake::answer(*sealing_->ring, peer.address, session.binding, sealing_->random,
                                           frame.payload, bytes, size);
  if (!handshake) return refusal_of(handshake.error());
  const auto number = wire::load<std::uint64_t>(bytes.data(), 0);
  if (size != bytes.size() || number <= session.change_number) return Refusal::bad_handshake;
  HandshakeMessage answer;
  answer.size = handshake->overhead(1);
  if (!handshake->write({}, answer.bytes.data())) return Refusal::bad_handshake;
  session.keys.offer(handshake->keys(sealing_->maker));
  session.message = answer;
  session.change_number = number;
  session.next_binding = handshake->hash();
  return std::nullopt;
}

void KeyChanges::on_rekey_answer(Peer& peer, const wire::Frame& frame, base::Instant now) {
  SealedSession& session = *peer.sealed;
  if (!session.change) return context_.counters.refuse(Refusal::bad_handshake);
  seal::Handshake handshake = *session.change;  // a copy: a message that does not fit must not spoil ours
  if (!handshake.read(frame.payload, {})) return context_.counters.refuse(Refusal::bad_handshake);
  session.keys.advance(handshake.keys(sealing_->maker));
  ++context_.counters.rekey_answers_received;
  session.next_binding = handshake.hash();
  session.change.reset();
  session.owes_message = false;
  settle(session, now);
  context_.agenda.prove(peer);
}

void KeyChanges::settle(SealedSession& session, base::Instant now) {
  ENSURE(session.next_binding.has_value(), "new keys without their handshake");
  session.binding = *session.next_binding;
  session.next_binding.reset();
  session.keyed_at = now;
  session.times_sent = 0;
  session.change_at = session.due_since = base::kNever;
  ++context_.counters.keys_changed;
}

}  // namespace fairlead::link
