#pragma once
// The state of a peer that the next program in this process needs (Link::save): its session and what has arrived in it.
// Nothing of this side is in flight or waits. Measured values (round trip, path MTU, congestion window) start anew.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/saved.hpp"
#include "link/half.hpp"
#include "link/reassembly.hpp"
#include "wire/saved_fields.hpp"

namespace fairlead::link {

struct SessionState {
  Half ours;
  wire::Hello theirs;
  wire::Ticks hello_timestamp;
  wire::Sequence to_send, to_receive;
  std::vector<wire::Sequence> ahead;  // arrived beyond to_receive
  std::uint32_t message_number = 0;
  std::vector<Reassembly::Slot> slots;  // all of them, or none
};

/// A half-open session: a hello has arrived, but no segment yet.
struct CandidateState {
  Half ours;
  wire::Hello theirs;
  wire::Ticks hello_timestamp;
};

struct PeerState {
  base::SocketAddress address;
  std::uint32_t slot = 0, generation = 0;
  std::uint32_t path_datagram_max = 0;
  bool is_known_to_engine = false;
  std::optional<SessionState> session;
  std::optional<CandidateState> candidate;
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
  archive(slot.is_open, slot.message, slot.size, slot.bytes_left, slot.target, slot.envelope, slot.has_void,
          slot.voided);
}
template <typename Archive>
void fields(Archive& archive, SessionState& session) {
  archive(session.ours, session.theirs, session.hello_timestamp, session.to_send, session.to_receive, session.ahead,
          session.message_number, session.slots);
}
template <typename Archive>
void fields(Archive& archive, CandidateState& candidate) {
  archive(candidate.ours, candidate.theirs, candidate.hello_timestamp);
}
template <typename Archive>
void fields(Archive& archive, PeerState& peer) {
  archive(peer.address, peer.slot, peer.generation, peer.path_datagram_max, peer.is_known_to_engine, peer.session,
          peer.candidate);
}
template <typename Archive>
void fields(Archive& archive, LinkState& link) {
  archive(link.secrets_drawn, link.tokens_drawn, link.rooms_taken, link.peers);
}

}  // namespace fairlead::link
