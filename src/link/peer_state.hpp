#pragma once
// The state of a peer that the next program in this process needs (Link::save): its session, what has arrived in it,
// and answers that the peer has not acknowledged. Nothing else of this side is in flight or waits. Measured values
// (round trip, path MTU, congestion window) start anew.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/saved.hpp"
#include "link/half.hpp"
#include "link/reassembly.hpp"
#include "seal/session_state.hpp"
#include "wire/saved_fields.hpp"

namespace fairlead::link {

/// Keys and a change of keys under way (sealed_session.hpp). A change that this side has begun is not saved; it begins
/// another one.
struct SealedState {
  seal::SessionKeysState keys;
  seal::Hash binding{};
  bool is_initiator = false;
  base::Instant keyed_at{};
  seal::PublicKey greeted_by{}, changed_by{};
  std::optional<seal::Hash> next_binding;
  std::vector<std::byte> message;  // of the responder: its answer
  bool owes_message = false;
  std::uint64_t change_number = 0, segments_when_due = 0;
  base::Instant change_at = base::kNever, due_since = base::kNever;
};

struct SessionState {
  Half ours;
  wire::Hello theirs;
  wire::Ticks hello_timestamp;
  wire::Sequence to_send, to_receive;
  std::vector<wire::Sequence> ahead;  // arrived beyond to_receive
  std::uint32_t message_number = 0;
  std::vector<Reassembly::Slot> slots;  // all of them, or none if nothing is in them
  std::optional<SealedState> sealed;
};

/// A half-open session: a hello has arrived, but no segment yet.
struct CandidateState {
  Half ours;
  wire::Hello theirs;
  wire::Ticks hello_timestamp;
  std::optional<SealedState> sealed;
  std::vector<std::byte> answer;  // to a sealed hello
};

/// A segment of short messages that the peer has not acknowledged, and whose outcome nobody awaits: answers.
struct SegmentState {
  bool is_sent = false;     // it has this sequence
  bool is_command = false;  // its channel
  wire::Sequence sequence;
  std::uint32_t records = 0;
  std::vector<std::byte> bytes;  // of the datagram
};

struct PeerState {
  base::SocketAddress address;
  std::uint32_t slot = 0, generation = 0;
  std::uint32_t path_datagram_max = 0;
  bool is_known_to_engine = false;
  std::optional<SessionState> session;
  std::optional<CandidateState> candidate;
  std::vector<SegmentState> segments;  // of the session: those that were sent, in order, then those that wait
};

struct LinkState {
  std::uint64_t secrets_drawn = 0, tokens_drawn = 0;  // numbers that must not be drawn again
  std::uint32_t rooms_taken = 0;                      // likewise; it is part of the names of short messages
  std::vector<PeerState> peers;
};

template <typename Archive>
void fields(Archive& archive, Half& half) {
  archive(half.token, half.first);
}
template <typename Archive>
void fields(Archive& archive, Reassembly::Slot& slot) {
  archive(slot.is_open, slot.has_void);
  if (slot.is_open) archive(slot.message, slot.size, slot.bytes_left, slot.target, slot.envelope);
  if (slot.has_void) archive(slot.voided);
}
template <typename Archive>
void fields(Archive& archive, SealedState& sealed) {
  for (std::byte& part : sealed.binding) archive(part);
  for (std::byte& part : sealed.greeted_by) archive(part);
  for (std::byte& part : sealed.changed_by) archive(part);
  bool has_next = sealed.next_binding.has_value();
  seal::Hash next = sealed.next_binding.value_or(seal::Hash{});
  archive(sealed.keys, sealed.is_initiator, sealed.keyed_at, has_next);
  for (std::byte& part : next) archive(part);
  if (has_next) sealed.next_binding = next;
  archive(sealed.message, sealed.owes_message, sealed.change_number, sealed.segments_when_due, sealed.change_at,
          sealed.due_since);
}
template <typename Archive>
void fields(Archive& archive, SessionState& session) {
  archive(session.ours, session.theirs, session.hello_timestamp, session.to_send, session.to_receive, session.ahead,
          session.message_number, session.slots, session.sealed);
}
template <typename Archive>
void fields(Archive& archive, CandidateState& candidate) {
  archive(candidate.ours, candidate.theirs, candidate.hello_timestamp, candidate.sealed, candidate.answer);
}
template <typename Archive>
void fields(Archive& archive, SegmentState& segment) {
  archive(segment.is_sent, segment.is_command, segment.sequence, segment.records, segment.bytes);
}
template <typename Archive>
void fields(Archive& archive, PeerState& peer) {
  archive(peer.address, peer.slot, peer.generation, peer.path_datagram_max, peer.is_known_to_engine, peer.session,
          peer.candidate, peer.segments);
}
template <typename Archive>
void fields(Archive& archive, LinkState& link) {
  archive(link.secrets_drawn, link.tokens_drawn, link.rooms_taken, link.peers);
}

}  // namespace fairlead::link
