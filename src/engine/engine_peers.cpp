// Peers that come and go, and peers that the engine expels. It ends the session or connection of an expelled peer after
// the delivery at hand. The peer may return; its budget of wrong secrets then continues (transport/offences.hpp).

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/say.hpp"
#include "engine/engine.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::engine {

void Engine::take_notice(const link::Notice& notice, base::Instant now) {
  switch (notice.kind) {
    case link::Notice::Kind::connected:
      lost_peers_.forget(transports_->address(notice.peer));
      return greet(notice);
    case link::Notice::Kind::reassembly_lost:
      return end_arrival(notice.target, notice.status);
    case link::Notice::Kind::forgotten:
      // Keep-alives for awaited answers, and retries of waiting ones, keep a peer from being forgotten. So nothing
      // should be left to end here.
      active_.drop_answers(notice.peer);
      return messages_.end_peer(notice.peer, Status::refused, now);
    case link::Notice::Kind::lost:
      return end_peer(notice, now);
    case link::Notice::Kind::parting:
      return;  // the transports resolve its address anew
    case link::Notice::Kind::parted:
      active_.drop_answers(notice.peer);
      messages_.end_peer(notice.peer, Status::refused, now);
      if (pairs_) pairs_->end_route(notice.peer, now);
      if (!base::is_logged(LogLevel::info, LogTopic::shm)) return;
      return transports_->flight().report(LogTopic::shm, [&] {
        return fmt::format("{} is reached over UDP for now: one of the two engines is being replaced\n",
                           transports_->address(notice.peer).to_string());
      });
  }
}

void Engine::greet(const link::Notice& notice) {
  if (!shm::Transport::has(notice.peer)) {
    const link::PeerFacts facts = transports_->link().facts(notice.peer);
    if (facts.is_translated) [[unlikely]]
      transports_->flight().report(
          LogTopic::link,
          [&] { return fmt::format("between this engine and {}, {}\n", facts.address.to_string(), kNat); },
          LogLevel::warning);
    return;
  }
  const shm::Connection* const there = shm_transport()->mapped_peer(notice.peer);
  const auto denial = there != nullptr ? there->process.denial() : shm::CrossMemory::Denial::none;
  const bool is_denied = denial != shm::CrossMemory::Denial::none;
  transports_->flight().report(LogTopic::shm, [&] {
    return fmt::format("{} is reached through shared memory{}{}\n", transports_->address(notice.peer).to_string(),
                       is_denied ? "; other memory through the ring: " : "", shm::CrossMemory::reason(denial));
  });
}

// An engine that leaves reports no losses. The end of a peer that had announced it is no trouble, unless something was
// pending. Peers of this host come and go with whole jobs: their end is reported only if it is logged.
void Engine::report_end(const link::Notice& notice, bool has_left, base::Instant now) {
  if (is_leaving_) return;
  const base::SocketAddress address = transports_->address(notice.peer);
  if (!shm::Transport::has(notice.peer)) {
    if (has_left && transports_->flight().left(notice.peer, notice.status, now)) return;
    return transports_->flight().lost(notice.peer, notice.status, now, [&] { return describe_peer(address, now); });
  }
  if (!base::is_logged(LogLevel::info, LogTopic::shm)) return;
  transports_->flight().report(LogTopic::shm, [&] {
    return fmt::format("{} is no longer reached through shared memory: {}\n", address.to_string(),
                       has_left ? "it has ended in order" : describe_peer(address, now));
  });
}

// Ends everything that waits for a lost peer. A later message resolves the address of a peer of this host again.
void Engine::end_peer(const link::Notice& notice, base::Instant now) {
  const base::SocketAddress address = transports_->address(notice.peer);
  const bool is_local = shm::Transport::has(notice.peer);
  std::string reason;
  if (is_local) base::say([&] { reason = shm_transport()->search().reason(address); });
  const bool has_left = lost_peers_.add(address, notice, now, std::move(reason));
  active_.end_peer(notice.peer, notice.status, now, has_left);
  report_end(notice, has_left, now);
  messages_.end_peer(notice.peer, notice.status, now);
  if (pairs_) pairs_->end_peer(notice.peer, notice.status, now);
  if (is_local) messages_.end_abandoned(notice.status, now);
  ports_.tell_loss();
}

void Engine::expel_condemned(base::Instant now) {
  while (const auto one = transports_->offences().take_condemned()) {
    const auto address = transports_->expel(one->peer, describe(one->offence), now);
    if (!address) continue;
    react(now);
    lost_peers_.blame(*address, one->offence);
  }
}

}  // namespace fairlead::engine
