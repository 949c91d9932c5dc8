// Peers that are put out: their session, or their connection, is ended as soon as what they sent last is done with.
// They may come back; what is kept of them does not begin anew with that.

#include <array>
#include <string>
#include <utility>

#include "engine/engine.hpp"
#include "engine/flows.hpp"

namespace fairlead::engine {

std::string_view Engine::describe(Offence offence) {
  switch (offence) {
    case Offence::takes_no_answers:
      return "asked for more than it took answers to: is it stopped, or its receive buffer too small?";
    case Offence::guesses:
      return "showed wrong keys again and again: does it use descriptors, tags or region keys of another job or life?";
    case Offence::holds_memory:
      return "did not acknowledge in time what was cancelled here: is it overloaded?";
    case Offence::none:
      break;
  }
  return "did nothing wrong";
}

/// At the next occasion: whoever calls this is in the middle of something with it.
void Engine::condemn(link::PeerHandle peer, Offence offence) {
  for (const Condemned& one : condemned_) {
    if (one.peer == peer) return;
  }
  condemned_.push_back({peer, offence});
}

std::uint64_t& Engine::expelled_for(Offence offence) {
  if (offence == Offence::guesses) return counters_.expelled_guesses;
  return offence == Offence::holds_memory ? counters_.expelled_holds_memory : counters_.expelled_no_answers;
}

void Engine::expel_condemned(base::Instant now) {
  const std::vector<Condemned> all = std::exchange(condemned_, {});
  for (const Condemned& one : all) {
    ++expelled_for(one.offence);
    const base::SocketAddress address = transports_->address(one.peer);
    transports_->expel(one.peer, std::string(describe(one.offence)), now);
    react(now);
    if (const auto loss = losses_.find(address); loss != losses_.end()) loss->second.offence = one.offence;
  }
}

/// Secrets have 64 bits, but for the keys of regions, whose 32 verbs prescribes: those cost so much that a thousand are
/// the most at a time. Answers go astray when an endpoint is closed, keys when what they open is; tags are also wrong
/// when programs start in any order and try until they are let in.
void Engine::note_wrong_secret(link::PeerHandle peer, Secret secret) {
  constexpr std::array<std::int64_t, 4> kCosts{16, 1, 1, 64};
  const auto kind = static_cast<std::size_t>(secret);
  ++counters_.wrong_secrets[kind];
  Suspect& suspect = suspects_[peer.slot];
  if (suspect.generation != peer.generation) suspect = {.generation = peer.generation, .budget = {}};
  if (!suspect.budget.spend(kCosts[kind], now_)) condemn(peer, Offence::guesses);
}

/// What waited for room to a peer that is lost.
void Engine::drop_deferred(link::PeerHandle peer, Status status) {
  deferred_.drop(peer, [&](const Deferred& answer) {
    ++counters_.dropped_answers;
    if (Operation* const readable = find_operation(answer.exposure)) {
      readable->is_link_pending = false;
      complete(slot_of(answer.exposure), status, 0);
    }
  });
}

}  // namespace fairlead::engine
