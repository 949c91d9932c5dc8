// Peers that are put out: their session, or their connection, is ended as soon as what they sent last is done with.
// They may come back; what is kept of them does not begin anew with that.

#include <string>

#include "engine/engine.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::engine {

void Engine::expel_condemned(base::Instant now) {
  for (const transport::Offences::Condemned& one : transports_->offences().take_condemned()) {
    const base::SocketAddress address = transports_->address(one.peer);
    transports_->expel(one.peer, std::string(describe(one.offence)), now);
    react(now);
    if (const auto loss = losses_.find(address); loss != losses_.end()) loss->second.offence = one.offence;
  }
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
