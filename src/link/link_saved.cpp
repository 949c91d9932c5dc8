// Saves and restores a link across programs (peer_state.hpp). Segments that arrive in between are lost, and the peers
// send them again as usual.

#include <fmt/format.h>

#include <algorithm>
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
                       .slots = {},
                       .sealed = {}};
  if (peer.sealed) session.sealed = peer.sealed->save();
  peer.received.for_each_ahead([&](wire::Sequence sequence) { session.ahead.push_back(sequence); });
  const bool are_empty = peer.reassembly.open_count() == 0 && peer.reassembly.has_slots();
  if (!are_empty) session.slots.assign(peer.reassembly.slots().begin(), peer.reassembly.slots().end());
  return session;
}

/// Returns whether the segment can be handed over: it is a copy, and nobody awaits an outcome.
bool can_be_kept(const Segment& segment) {
  return segment.block != nullptr && segment.outcomes_wanted == 0;
}

/// Returns whether all that was submitted for this peer has arrived, or can be handed over.
bool can_be_kept(const Peer& peer) {
  if (!peer.messages.empty() || !peer.messages_cut.empty()) return false;
  if (peer.state != Peer::State::open) return !peer.has_queued();
  if (peer.window.in_flight() != 0) {
    for (wire::Sequence sequence = peer.window.oldest(); sequence != peer.window.next(); ++sequence)
      if (const Segment* const segment = peer.window.find(sequence); segment != nullptr && !can_be_kept(*segment))
        return false;
  }
  return std::ranges::all_of(peer.queued, [](const SegmentList& queue) {
    return std::ranges::all_of(queue, [](const Segment& segment) { return can_be_kept(segment); });
  });
}

SegmentState state_of(const Segment& segment, bool is_sent) {
  const auto& bytes = segment.block->bytes;
  return {.is_sent = is_sent,
          .is_command = segment.channel == Channel::command,
          .sequence = is_sent ? segment.sequence : wire::Sequence{},
          .records = segment.records,
          .bytes = {bytes.begin(), bytes.begin() + segment.size}};
}

std::vector<SegmentState> segments_of(const Peer& peer) {
  std::vector<SegmentState> saved;
  if (peer.window.in_flight() != 0) {
    for (wire::Sequence sequence = peer.window.oldest(); sequence != peer.window.next(); ++sequence)
      if (const Segment* const segment = peer.window.find(sequence); segment != nullptr)
        saved.push_back(state_of(*segment, true));
  }
  for (const SegmentList& queue : peer.queued)
    for (const Segment& segment : queue) saved.push_back(state_of(segment, false));
  return saved;
}

Result<PeerState> state_of(const Peer& peer) {
  if (!can_be_kept(peer)) return refuse(Status::again, peer, "has not acknowledged all that was sent to it");
  PeerState state{.address = peer.address,
                  .slot = peer.slot,
                  .generation = peer.generation,
                  .path_datagram_max = peer.path_datagram_max,
                  .is_known_to_engine = peer.is_known_to_engine,
                  .session = {},
                  .candidate = {},
                  .segments = {}};
  if (peer.state == Peer::State::open) {
    state.session = session_of(peer);
    state.segments = segments_of(peer);
  }
  if (peer.candidate)
    state.candidate = CandidateState{.ours = peer.candidate->ours,
                                     .theirs = peer.candidate->theirs,
                                     .hello_timestamp = peer.candidate->hello_timestamp,
                                     .sealed = {},
                                     .answer = {}};
  if (peer.candidate && peer.candidate->sealed) {
    state.candidate->sealed = peer.candidate->sealed->session->save();
    const auto answer = peer.candidate->sealed->answer.span();
    state.candidate->answer.assign(answer.begin(), answer.end());
  }
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

bool Link::is_still() const {
  if (state_->context.counters.messages_pending == 0) return true;
  for (std::uint32_t slot = 0; slot < state_->peers.slots(); ++slot)
    if (const Peer* const peer = state_->peers.at(slot); peer != nullptr && !can_be_kept(*peer)) return false;
  return true;
}

/// Restores what the peer has not acknowledged. What was sent is sent again, under the same sequence.
bool Link::restore_segments(const PeerState& saved, PeerHandle handle) {
  if (saved.segments.empty()) return true;
  Peer& peer = *state_->peers.at(handle.slot);
  LinkContext& context = state_->context;
  if (peer.state != Peer::State::open || !peer.window.reserve(context.options.window_segments)) return false;
  for (const SegmentState& one : saved.segments) {
    const bool is_possible = one.records != 0 && one.records <= Block::kRecordsMax &&
                             one.bytes.size() > wire::kSegmentHeaderBytes && one.bytes.size() <= Block::kBytes;
    Segment* const segment = is_possible ? context.hotel.check_in_with_block(peer) : nullptr;
    if (segment == nullptr) return false;
    segment->channel = one.is_command ? Channel::command : Channel::data;
    segment->size = static_cast<std::uint32_t>(one.bytes.size());
    std::ranges::copy(one.bytes, segment->block->bytes.begin());
    for (std::uint32_t i = 0; i < one.records; ++i) segment->keep({}, false);
    context.counters.messages_submitted += one.records;
    context.counters.messages_pending += one.records;
    const auto channel = index_of(segment->channel);
    if (one.is_sent) {
      if (!peer.window.restore(*segment, one.sequence)) {
        context.counters.messages_submitted -= one.records;
        context.counters.messages_pending -= one.records;
        context.hotel.check_out(*segment);
        return false;
      }
      peer.bytes_in_flight += context.options.charge(segment->size);
      ++context.counters.segments_sent;
      ++context.counters.segments_in_flight;
      context.agenda.resend(*segment, ResendCause::returned);
    } else {
      peer.queued[channel].push_back(*segment);
      ++peer.queued_segments[channel];
      peer.queued_messages[channel] += one.records;
    }
  }
  context.agenda.make_ready(peer);
  return true;
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
    const bool is_in_the_clear =
        (state.session && !state.session->sealed) || (state.candidate && !state.candidate->sealed);
    const bool is_sealed = (state.session && state.session->sealed) || (state.candidate && state.candidate->sealed);
    if (is_sealed && !state_->sealing)
      return refuse(Status::not_supported, *peer, "has a sealed session, and there is no key any more");
    if (is_in_the_clear && state_->greetings.is_sealed_only(state.address, nullptr))
      return refuse(Status::not_supported, *peer, "has a session in the clear, and has to be sealed now");
    if ((state.session && !state_->sessions.restore(*peer, *state.session, now)) ||
        (state.candidate && !state_->sessions.restore(*peer, *state.candidate, now)) ||
        !restore_segments(state, PeerTable::handle(*peer)))
      return refuse(Status::invalid, *peer, "has a session that contradicts itself or the settings");
  }
  return {};
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, ENOMEM, "no memory for the peers that were handed over"});
}

}  // namespace fairlead::link
