// Saves and restores a link across programs (peer_state.hpp). Segments that arrive in between are lost, and resent as
// usual.

#include <fmt/format.h>

#include <new>

#include "link/link_state.hpp"
#include "link/peer_state.hpp"

namespace fairlead::link {
namespace {

std::unexpected<Error> refuse(Status status, const Peer& peer, std::string_view why) {
  return std::unexpected(Error{status, 0, fmt::format("{} {}", peer.address.to_string(), why)});
}

SessionState session_of(const Peer& peer) {
  SessionState session{.ours = peer.ours,
                       .theirs = peer.theirs,
                       .hello_timestamp = peer.hello_timestamp,
                       .to_send = peer.window.next(),
                       .to_receive = peer.received.next(),
                       .ahead = {},
                       .message_number = peer.message_number,
                       .slots = {}};
  peer.received.for_each_ahead([&](wire::Sequence sequence) { session.ahead.push_back(sequence); });
  session.slots.assign(peer.reassembly.slots().begin(), peer.reassembly.slots().end());
  return session;
}

Result<PeerState> state_of(const Peer& peer) {
  if (peer.sealed || peer.sealed_hello || (peer.candidate && peer.candidate->sealed))
    return refuse(Status::not_supported, peer, "has a sealed session, whose keys cannot be handed over");
  if (peer.window.in_flight() != 0 || peer.has_queued() || !peer.messages_cut.empty())
    return refuse(Status::again, peer, "has not acknowledged all that was sent to it");
  PeerState state{.address = peer.address,
                  .slot = peer.slot,
                  .generation = peer.generation,
                  .path_datagram_max = peer.path_datagram_max,
                  .is_known_to_engine = peer.is_known_to_engine,
                  .session = {},
                  .candidate = {}};
  if (peer.state == Peer::State::open) state.session = session_of(peer);
  if (peer.candidate)
    state.candidate = CandidateState{.ours = peer.candidate->ours,
                                     .theirs = peer.candidate->theirs,
                                     .hello_timestamp = peer.candidate->hello_timestamp};
  return state;
}

}  // namespace

Result<LinkState> Link::save() const {
  if (has_news()) return std::unexpected(Error{Status::again, 0, "the engine has not heard all that its link tells"});
  LinkState saved{.secrets_drawn = state_->secrets.drawn(),
                  .tokens_drawn = state_->greetings.tokens().drawn(),
                  .rooms_taken = state_->context.hotel.taken(),
                  .peers = {}};
  for (std::uint32_t slot = 0; slot < state_->peers.slots(); ++slot) {
    const Peer* const peer = state_->peers.at(slot);
    if (peer == nullptr) continue;
    auto state = state_of(*peer);
    if (!state) return std::unexpected(std::move(state.error()));
    saved.peers.push_back(std::move(*state));
  }
  return saved;
}

Result<> Link::restore(const LinkState& saved, base::Instant now) try {
  state_->secrets.skip_to(std::max(saved.secrets_drawn, state_->secrets.drawn()));
  state_->greetings.tokens().skip_to(saved.tokens_drawn);
  state_->context.hotel.skip_to(saved.rooms_taken);
  for (const PeerState& state : saved.peers) {
    if (!state_->sessions.has_room_for_news()) throw std::bad_alloc();
    Peer* const peer = state_->places.add_at(state.slot, state.generation, state.address, now);
    if (peer == nullptr) {
      return std::unexpected(Error{Status::invalid, 0,
                                   fmt::format("{} has no place at number {}", state.address.to_string(), state.slot)});
    }
    peer->path_datagram_max = state.path_datagram_max;
    peer->is_known_to_engine = state.is_known_to_engine;
    state_->sizes.set_goal(*peer, now);
    if ((state.session || state.candidate) && state_->greetings.is_sealed_only(state.address, nullptr))
      return refuse(Status::not_supported, *peer, "has a session in the clear, and has to be sealed now");
    if ((state.session && !state_->sessions.restore(*peer, *state.session, now)) ||
        (state.candidate && !state_->sessions.restore(*peer, *state.candidate, now)))
      return refuse(Status::invalid, *peer, "has a session that contradicts itself or the settings");
  }
  return {};
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, ENOMEM, "no memory for the peers that were handed over"});
}

}  // namespace fairlead::link
