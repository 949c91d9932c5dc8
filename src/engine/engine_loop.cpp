// One pass: collect from the path, react, run timers, emit. Bounded in every part, so that a busy peer can keep
// neither the caller nor the other peers waiting for long.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/rare.hpp"
#include "engine/engine.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::engine {

bool Engine::progress(base::Instant now) {
  now = now_ = std::max(now, now_);  // the threads' clocks differ by some 100 ns
  bool any = flows_ && flows_->progress(now);
  if (!transports_) return any;
  if (shm_transport() != nullptr) {
    any |= collect_shm(now);
    if (transports_->offences().is_anyone_condemned()) [[unlikely]]
      expel_condemned(now);
    // The straight line of traffic inside the host: nothing of the network is due.
    if (!transports_->is_network_due(now) && !is_retrying()) [[likely]]
      return react(now) || any;
  }
  any |= collect(now);
  any |= transports_->expire(now);
  if (!impatient_.empty()) [[unlikely]]
    end_impatient(now);
  if (transports_->offences().is_anyone_condemned()) [[unlikely]]
    expel_condemned(now);
  any |= react(now);
  if (!withdrawing_.empty()) [[unlikely]]
    retry_withdrawals();
  if (!deferred_.is_empty()) [[unlikely]]
    retry_deferred(now);
  any |= active_.progress(now);
  if (now >= ask_at_) [[unlikely]]
    ask_for_answers(now);
  any |= transports_->emit(transport::Transports::kTrainsInPass, now);
  if (transports_->flight().is_watch_due(now)) [[unlikely]] {
    transports_->flight().watch(now, [&](std::uint32_t peer) {
      const OperationChain* chain = waiting_.find(peer);
      return chain != nullptr && !chain->is_empty();
    });
  }
  return any;
}

base::Instant Engine::next_deadline() const {
  const base::Instant flows = flows_ ? flows_->next_deadline() : base::kNever;
  if (!transports_) return flows;
  // Answers that wait for room are tried again in each pass, so a pass has to come.
  // So are withdrawals that a peer holds up.
  const base::Instant retry = is_retrying() ? now_ + std::chrono::milliseconds(1) : base::kNever;
  const base::Instant impatient = impatient_.empty() ? base::kNever : impatient_.front().at;
  return std::min({transports_->next_deadline(now_), retry, ask_at_, flows, impatient});
}

bool Engine::collect(base::Instant now) {
  const bool any = transports_->collect(now);
  while (const auto delivery = transports_->next_delivery(now)) {
    // A peer's end comes before what it says in its next session: else that would end with it.
    if (transports_->has_loss()) [[unlikely]]
      react(now);
    deliver(*delivery, now);
    if (transports_->offences().is_anyone_condemned()) [[unlikely]]
      expel_condemned(now);
  }
  return any;
}

bool Engine::react(base::Instant now) {
  if (!transports_->has_news()) [[likely]]
    return false;
  bool any = false;
  while (const auto end = shm_transport() ? shm_transport()->next_lost() : std::nullopt) {
    end_near(*end);
    any = true;
  }
  // Outcomes first: a peer's loss promises that every message to it has had its outcome.
  while (const auto outcome = transports_->next_outcome()) {
    end_outcome(*outcome);
    any = true;
  }
  while (const auto notice = transports_->next_notice(now)) {
    end_peer(*notice, now);
    any = true;
  }
  return any;
}

void Engine::end_outcome(const link::Outcome& outcome) {
  if (transport::client_of(outcome.cookie) == transport::Client::queue_pairs) return flows_->end_outcome(outcome, now_);
  Operation* operation = find_operation(outcome.cookie);
  if (operation == nullptr) return;  // fire and forget
  const std::uint32_t slot = slot_of(outcome.cookie);
  operation->is_link_pending = false;
  if (outcome.status != Status::ok && operation->kind != OperationKind::expose_readable) [[unlikely]]
    transports_->flight().failed(operation->peer, now_);
  if (operation->kind == OperationKind::send || operation->kind == OperationKind::expose_readable) {
    complete(slot, outcome.status, operation->length);
    return;
  }
  if (outcome.status != Status::ok) {
    if (operation->status == Status::ok) operation->status = outcome.status;
    operation->is_answer_pending = false;
  }
  settle(slot);
}

// Operations that wait for the answer of a peer that is lost.
void Engine::end_waiting(link::PeerHandle peer, Status status) {
  OperationChain* chain = waiting_.find(peer.slot);
  while (chain != nullptr && !chain->is_empty()) {
    const std::uint32_t slot = chain->first();
    Operation& operation = operations_[slot];
    chain->remove(operations_, slot);
    operation.is_answer_pending = false;
    operation.is_link_pending = false;
    if (operation.status == Status::ok) operation.status = status;
    settle(slot);
  }
}

/// Whether the peer left in order. Whoever did is not there either for those who look for him later, until he is met
/// again: that ends the memory of it.
bool Engine::note_loss(const link::Notice& notice, base::Instant now) {
  const base::SocketAddress& address = transports_->address(notice.peer);
  const auto before = losses_.find(address);
  const bool has_left =
      notice.diagnosis == link::Diagnosis::left || (before != losses_.end() && before->second.has_left);
  if (before != losses_.end() || losses_.size() < kLossesRemembered)
    losses_[address] = {.notice = notice, .when = now, .has_left = has_left};
  return has_left;
}

// A peer of the shm transport. From now on it is reached another way.
void Engine::end_shm_peer(const link::Notice& notice, base::Instant now) {
  const base::SocketAddress& address = transports_->address(notice.peer);
  if (notice.kind == link::Notice::Kind::connected) {
    losses_.erase(address);
    const shm::Connection* there = shm_transport()->mapped_peer(notice.peer);
    const auto denial = there != nullptr ? there->process.denial() : shm::CrossMemory::Denial::none;
    transports_->flight().report(
        fmt::format("{} is reached through shared memory{}{}\n", address.to_string(),
                    denial == shm::CrossMemory::Denial::none ? "" : "; other memory through the ring: ",
                    shm::CrossMemory::reason(denial)));
  } else if (notice.kind == link::Notice::Kind::reassembly_lost) {
    end_arrival(notice.target, notice.status);
  } else {
    active_.end_peer(notice.peer, notice.status, now, note_loss(notice, now));
    end_waiting(notice.peer, notice.status);
    drop_deferred(notice.peer, notice.status);
    if (flows_) flows_->end_peer(notice.peer, notice.status, now);
    end_abandoned(notice.status);
  }
}

void Engine::end_peer(const link::Notice& notice, base::Instant now) {
  if (shm::Transport::has(notice.peer)) return end_shm_peer(notice, now);
  switch (notice.kind) {
    case link::Notice::Kind::connected: {
      losses_.erase(transports_->address(notice.peer));
      return;
    }
    case link::Notice::Kind::reassembly_lost:
      return end_arrival(notice.target, notice.status);
    case link::Notice::Kind::forgotten:
      // What waits for an answer asks for it all the time, and what waits for room is tried all the time: nothing does.
      end_waiting(notice.peer, Status::refused);
      active_.drop_answers(notice.peer);
      return drop_deferred(notice.peer, Status::refused);
    case link::Notice::Kind::lost: {
      const base::SocketAddress address = transports_->address(notice.peer);
      active_.end_peer(notice.peer, notice.status, now, note_loss(notice, now));
      transports_->flight().lost(notice.peer, notice.status, describe_peer(address, now), now);
      end_waiting(notice.peer, notice.status);
      drop_deferred(notice.peer, notice.status);
      if (flows_) flows_->end_peer(notice.peer, notice.status, now);
      return;
    }
  }
}

void Engine::retry_deferred(base::Instant now) {
  constexpr std::size_t kTriesInPass = 256;
  deferred_.retry(kTriesInPass, now, [&](link::PeerHandle peer, const Deferred& first) {
    return submit_answer(peer, first.envelope, first.exposure, now) != Status::again;
  });
}

base::Duration Engine::ask_after() const {
  return std::chrono::milliseconds(options_.get(Option::give_up_after)) / 8;
}

// A peer that acknowledged a put or a get and died before it answered: nothing is in flight to it any more, so the link
// has no reason to notice. A message that asks nothing makes it look: the peer acknowledges it, or it is found out.
void Engine::ask_for_answers(base::Instant now) {
  ask_at_ = base::kNever;
  for (const OperationChain& chain : waiting_.of_link()) {
    if (chain.is_empty()) continue;
    ask_at_ = now + ask_after();
    transports_->ask(operations_[chain.first()].peer, ask_after(), now);
  }
}

}  // namespace fairlead::engine
