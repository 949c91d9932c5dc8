// Sealed sessions (docs/seal.md): their segments are sealed train by train as they go out, and opened before anything
// of them is believed; their hellos carry the two messages of a handshake. Who is on the path can forge a word in the
// clear: so a reset only makes us ask, a refusal only tells why a greeting fails in the end.
//
// Hellos that cross would make two sessions of different keys. The one with the smaller ephemeral key stays the
// initiator: its own hello will be answered, and it leaves the other's alone.

#include <algorithm>
#include <new>
#include <utility>

#include "base/ensure.hpp"
#include "base/rare.hpp"
#include "link/link_state.hpp"

namespace fairlead::link {
namespace {

static_assert(wire::kTagBytes == seal::kTagBytes);
static_assert(wire::kSealedHelloBytes + wire::kSealedInnerBytes + seal::Handshake::kOverheadMost <=
              wire::kSealedHandshakeMost);

}  // namespace

Refusal refusal_of(seal::Refused refused) {
  switch (refused) {
    case seal::Refused::other_kind:
      return Refusal::other_kind;
    case seal::Refused::wrong_secret:
      return Refusal::wrong_secret;
    case seal::Refused::wrong_key:
      return Refusal::wrong_key;
    case seal::Refused::unknown_key:
      return Refusal::unknown_key;
    case seal::Refused::cannot_seal:
      return Refusal::cannot_seal;
    default:
      return Refusal::not_sealed;
  }
}

bool Link::State::is_sealed_only(const base::SocketAddress& address, const Peer* peer) const {
  if (peer != nullptr && peer->sealed) return true;
  return sealing && base::contains(sealing->required, address);
}

// Segments ------------------------------------------------------------------------------------------------------------

/// Seals a train whose datagrams are complete but for their checksums: all of it into the staging area, each datagram
/// with its tag, under a number of its own.
void Link::State::seal_train(Peer& peer, base::Instant now, Train& train) {
  SealedSession& session = *peer.sealed;
  const auto tags = static_cast<std::uint32_t>(train.datagrams * wire::kTagBytes);
  ENSURE(train.bytes + tags <= kStagingBytes, "a train of {} bytes in a staging area of {}", train.bytes,
         kStagingBytes);
  std::byte* to = staging.get();
  std::size_t piece = 0;
  for (std::uint32_t left = train.bytes; left != 0;) {
    const std::uint32_t size = std::min(left, train.datagram_size);
    left -= size;
    iovec* const first = train.pieces + piece;
    std::size_t taken = 0;
    for (; taken < size; ++piece) taken += train.pieces[piece].iov_len;
    ENSURE(taken == size, "a train is cut within a piece: {} bytes instead of {}", taken, size);

    const auto* const header = static_cast<const std::byte*>(first->iov_base);
    std::copy_n(header, wire::kSegmentHeaderBytes, to);
    *first = {const_cast<std::byte*>(header) + wire::kSegmentHeaderBytes, first->iov_len - wire::kSegmentHeaderBytes};
    const seal::SessionKeys::Mark mark = session.keys.next_mark();
    wire::mark_sealed(to, mark.epoch, static_cast<std::uint32_t>(mark.number));
    const seal::Bytes associated(to, wire::kSegmentHeaderBytes);
    to += wire::kSegmentHeaderBytes;
    session.keys.seal(mark, associated, {first, train.pieces + piece}, to);
    to += size - wire::kSegmentHeaderBytes + wire::kTagBytes;
  }
  train.bytes += tags;
  train.datagram_size += static_cast<std::uint32_t>(wire::kTagBytes);
  train.pieces[0] = {staging.get(), train.bytes};
  train.piece_count = 1;
  counters.bytes_sent += tags;
  watch_keys(peer, now);
}

/// What a train may have before it is sealed; one segment always.
std::uint32_t Link::State::bytes_before_tags(const Peer& peer, std::uint32_t bytes_max, std::uint32_t datagrams_max) {
  if (peer.tag_bytes == 0) [[likely]]
    return bytes_max;
  const auto tags = static_cast<std::uint32_t>(datagrams_max * wire::kTagBytes);
  return std::max(std::min(bytes_max, kTrainBytesMost) - std::min(tags, bytes_max / 2), peer.datagram_size);
}

/// A segment of a session or candidate of ours, if either it or the session is sealed.
void Link::State::on_sealed_segment(Peer& peer, bool is_of_candidate, const wire::Frame& frame, base::Instant now) {
  SealedSession* session = peer.sealed.get();
  if (is_of_candidate) session = peer.candidate->sealed ? peer.candidate->sealed->session.get() : nullptr;
  if (!frame.is_sealed()) return refuse(Refusal::not_sealed);
  if (session == nullptr) return refuse(Refusal::unknown_epoch);
  const std::uint64_t epoch_before = session->keys.epoch();
  switch (session->keys.open(wire::epoch_of(frame.header), wire::number_of(wire::header_bytes(frame)),
                             wire::header_bytes(frame), frame.payload, opened.get())) {
    case seal::Opened::unknown_epoch:
      return refuse(Refusal::unknown_epoch);
    case seal::Opened::replayed:
      return refuse(Refusal::replayed);
    case seal::Opened::bad_tag:
      return refuse(Refusal::bad_tag);
    case seal::Opened::ok:
      break;
  }
  const std::span plain(opened.get(), frame.payload.size() - wire::kTagBytes);
  if (const auto reason = wire::check_payload(frame.header.kind, plain)) [[unlikely]] {
    ++counters.malformed[static_cast<std::size_t>(*reason)];
    return;
  }
  if (session->keys.epoch() != epoch_before) [[unlikely]]
    on_changed(*session, now);
  if (peer.sealed_hello && !is_of_candidate) [[unlikely]]
    end_doubt(peer);
  if (is_of_candidate) [[unlikely]]
    promote(peer, now);
  accept_segment(peer, {frame.header, plain}, now);
}

Link::State::SealedClose Link::State::sealed_close(SealedSession& session, const wire::Header& header) {
  SealedClose close;
  std::byte* const to = close.data();
  wire::encode(header, to);
  const seal::SessionKeys::Mark mark = session.keys.next_mark();
  wire::mark_sealed(to, mark.epoch, static_cast<std::uint32_t>(mark.number));
  session.keys.seal(mark, {to, wire::kSegmentHeaderBytes}, {}, to + wire::kSegmentHeaderBytes);
  return close;
}

// Our hello -----------------------------------------------------------------------------------------------------------

/// The greeting that begin_opening() begins, or a doubt. False if there is no key to greet this peer with; or, with
/// nothing refused, no memory now: then it is made when it would be repeated.
bool Link::State::make_sealed_hello(Peer& peer, const Half& ours, std::uint64_t session) try {
  peer.sealed_hello.reset();
  peer.refused_here = seal::Refused::none;
  peer.cookie = 0;
  return write_sealed_hello(peer, ours, session);
} catch (const std::bad_alloc&) {
  return false;
}

bool Link::State::write_sealed_hello(Peer& peer, const Half& ours, std::uint64_t session) {
  if (!sealing) {
    peer.refused_here = seal::Refused::cannot_seal;
    return false;
  }
  auto handshake = seal::Handshake::begin(*sealing->ring, peer.address, peer.key_attempt, {}, sealing->random);
  if (!handshake) {
    peer.refused_here = seal::Refused::unknown_key;
    return false;
  }
  HandshakeMessage message;
  wire::encode(wire::ReturnAddress{.slot = peer.slot, .token = ours.token}, message.bytes.data());
  std::array<std::byte, wire::kSealedInnerBytes> inner;
  wire::encode(wire::SealedInner{.hello = hello_of(peer, ours), .session = session}, inner.data());
  message.size = wire::kSealedHelloBytes + inner.size() + handshake->overhead(0);
  if (!handshake->write(inner, message.bytes.data() + wire::kSealedHelloBytes)) {
    peer.refused_here = seal::Refused::wrong_key;
    return false;
  }
  peer.sealed_hello = std::make_unique<SealedHello>(std::move(*handshake), ours, message);
  return true;
}

void Link::State::on_sealed_hello_ack(Peer& peer, const wire::Frame& frame, base::Instant now) {
  if (!frame.is_sealed()) return refuse(Refusal::not_sealed);
  if (!peer.sealed_hello) return refuse(Refusal::unknown_epoch);
  // Hellos that cross: theirs was answered by us, and is the one that counts.
  if (peer.candidate && peer.candidate->sealed &&
      peer.candidate->sealed->session->greeted_by < peer.sealed_hello->handshake.ephemeral())
    return refuse(Refusal::late_hello_ack);
  seal::Handshake handshake = peer.sealed_hello->handshake;  // one that does not fit must not spoil ours
  std::array<std::byte, wire::kSealedInnerBytes> inner;
  if (!handshake.read(frame.payload, inner) || is_own(wire::read_sealed_inner(inner).hello))
    return refuse(Refusal::bad_handshake);
  if (!wire::is_possible(wire::read_sealed_inner(inner).hello)) {
    ++counters.malformed[static_cast<std::size_t>(wire::DropReason::bad_hello)];
    return;
  }
  const Half ours = peer.sealed_hello->ours;
  auto sealed = std::make_unique<SealedSession>(handshake, sealing->maker, true, now);
  ++counters.hello_acks_received;
  // The peer has shown that it does not know the session that was doubted.
  if (peer.state == Peer::State::open) lose(peer, Status::restarted, now, true);
  peer.sealed = std::move(sealed);
  establish(peer, ours, wire::read_sealed_inner(inner).hello, now);
  prove(peer);
}

/// Sends a segment at once, so that the peer knows that we have this session.
void Link::State::prove(Peer& peer) {
  peer.ack.is_owed = true;
  peer.ack.is_at_once = true;
  if (!peer.ack_hook.is_linked()) acks.push_back(peer);
}

/// Why our hello was refused, or so somebody says who has seen it. It goes on being said until the time is over: only
/// if it stays without an answer this is what the engine is told.
void Link::State::on_hello_refused(const base::SocketAddress& from, const wire::Frame& frame) {
  Peer* peer = find_opening(from, frame.header);
  const std::uint64_t reason = wire::read_refused(frame.payload);
  if (peer == nullptr || reason == 0 || reason >= seal::kRefusedKinds) return refuse(Refusal::late_hello_ack);
  ++counters.hello_refusals_received;
  const bool is_first = std::exchange(peer->refused, static_cast<seal::Refused>(reason)) == seal::Refused::none;
  if (peer->state != Peer::State::opening) return;
  if (peer->refused == seal::Refused::not_sealed && sealing && !peer->sealed_hello && is_first) {
    peer->is_asked_to_seal = true;
    peer->owes_hello = make_sealed_hello(*peer, peer->ours, 0);
    if (!peer->owes_hello) return;
    if (!peer->control_hook.is_linked()) control.push_back(*peer);
  } else if (peer->refused == seal::Refused::wrong_key && peer->sealed_hello) {
    peer->is_other_key_due = true;  // not now: who forges refusals must not make us compute one hello for each
  }
}

// Theirs --------------------------------------------------------------------------------------------------------------

/// One that showed its cookie. Only now something is computed for it.
void Link::State::on_sealed_hello(const base::SocketAddress& from, const wire::Frame& frame, base::Instant now,
                                  std::uint32_t datagram_size_max) {
  if (!frame.is_sealed()) return refuse_hello(from, frame, seal::Refused::not_sealed, now);
  if (!sealing) return refuse_hello(from, frame, seal::Refused::cannot_seal, now);
  const seal::Bytes message = frame.payload.subspan(wire::kSealedHelloBytes);
  const auto ephemeral = seal::Handshake::ephemeral_of(message);
  if (!ephemeral) return refuse_hello(from, frame, seal::Refused::wrong_secret, now);
  Peer* peer = peers.find(from);
  if (peer != nullptr && is_known_greeting(*peer, *ephemeral)) {
    ++counters.hellos_received;
    return;
  }
  if (!handshake_budget.take(from, now)) return refuse(Refusal::too_many_handshakes);
  std::array<std::byte, wire::kSealedInnerBytes> bytes;
  std::size_t size = 0;
  auto handshake = seal::Handshake::answer(*sealing->ring, from, {}, sealing->random, message, bytes, size);
  if (!handshake) return refuse_hello(from, frame, handshake.error(), now);
  const wire::SealedInner inner = wire::read_sealed_inner(bytes);
  const wire::ReturnAddress shown = wire::read_return_address(frame.payload, true);
  if (size != bytes.size() || !wire::is_possible(inner.hello) || inner.hello.token != shown.token) {
    ++counters.malformed[static_cast<std::size_t>(wire::DropReason::bad_hello)];
    return;
  }
  if (is_own(inner.hello)) return refuse(Refusal::bad_handshake);
  peer = peer_of_hello(from, datagram_size_max, now);
  if (peer == nullptr) return refuse(Refusal::table_full);
  const bool is_ours = is_of_our_session(*peer, inner);
  if (!is_ours && !make_sealed_candidate(*peer, inner.hello, *handshake, *ephemeral, now)) {
    refuse(Refusal::no_memory);
  } else {
    ++counters.hellos_received;
  }
  if (is_ours) return prove(*peer);
  if (!peer->candidate && !peer->is_known_to_engine) forget(*peer);  // or their key was worthless
}

/// Whether this hello was answered before, or need not be.
bool Link::State::is_known_greeting(Peer& peer, const seal::PublicKey& ephemeral) {
  if (peer.candidate && peer.candidate->sealed && peer.candidate->sealed->session->greeted_by == ephemeral) {
    owe_hello_ack(peer);
    return true;
  }
  if (peer.sealed && !peer.sealed->is_initiator && peer.sealed->greeted_by == ephemeral) return true;
  // Hellos that cross: theirs is left alone, for ours will be answered.
  return peer.sealed_hello && peer.sealed_hello->handshake.ephemeral() < ephemeral;
}

/// The peer doubts a session that we have, or its hello crossed ours and came late.
bool Link::State::is_of_our_session(const Peer& peer, const wire::SealedInner& inner) {
  if (peer.state != Peer::State::open || !peer.sealed) return false;
  return inner.session == peer.ours.token || inner.hello.token == peer.theirs.token;
}

/// False if there is no memory for it.
bool Link::State::make_sealed_candidate(Peer& peer, const wire::Hello& theirs, seal::Handshake& handshake,
                                        const seal::PublicKey& ephemeral, base::Instant now) try {
  const Half ours = half_to_offer(peer);
  auto sealed = std::make_unique<SealedCandidate>();
  std::array<std::byte, wire::kSealedInnerBytes> inner;
  wire::encode(wire::SealedInner{.hello = hello_of(peer, ours)}, inner.data());
  sealed->answer.size = inner.size() + handshake.overhead(1);
  if (!handshake.write(inner, sealed->answer.bytes.data())) return true;
  sealed->session = std::make_unique<SealedSession>(handshake, sealing->maker, false, now);
  sealed->session->greeted_by = ephemeral;
  offer_candidate(peer, {ours, theirs, {}, now, std::move(sealed)});
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Link::State::refuse_hello(const base::SocketAddress& from, const wire::Frame& frame, seal::Refused why,
                               base::Instant now) {
  refuse(refusal_of(why));
  turned_away = {.from = from, .why = why, .number = turned_away.number + 1};
  const wire::ReturnAddress to = wire::read_return_address(frame.payload, frame.is_sealed());
  answer_stranger({.to = from,
                   .kind = wire::Kind::hello_refused,
                   .slot = to.slot,
                   .token = to.token,
                   .word = static_cast<std::uint64_t>(why)},
                  now);
}

// Doubt ---------------------------------------------------------------------------------------------------------------

/// Somebody says that the peer does not know our session; it may have restarted. We greet it anew, and tell it of the
/// session: if it has it, it sends something of it; if not, it answers. Until then the session goes on.
void Link::State::doubt(Peer& peer, base::Instant now) {
  if (peer.sealed_hello) return;
  ++counters.resets_doubted;
  if (!make_sealed_hello(peer, new_half(), peer.theirs.token)) return;
  peer.opening_since = now;
  peer.hellos = 1;
  peer.has_shown_cookie = false;
  peer.owes_hello = true;
  if (!peer.control_hook.is_linked()) control.push_back(peer);
  peer.hello_at = now + hello_after(peer);
  wake_by(peer, peer.hello_at);
}

void Link::State::end_doubt(Peer& peer) {
  peer.sealed_hello.reset();
  peer.owes_hello = false;
}

}  // namespace fairlead::link
