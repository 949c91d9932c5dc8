// One pass: collect from the transports, run timers, react, emit. Each part is bounded, so a busy peer delays neither
// the caller nor other peers for long.

#include <algorithm>
#include <chrono>

#include "engine/engine.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::engine {

bool Engine::progress(base::Instant now) {
  now = now_ = std::max(now, now_);  // the threads' clocks differ by some 100 ns
  bool any = pairs_ && pairs_->progress(now);
  if (messages_.is_copying()) [[unlikely]] {
    messages_.copy_on(now);
    any = true;
  }
  if (!transports_) return any;
  if (shm_transport() != nullptr) {
    shm_transport()->begin_pass(now);
    any |= take_local(now);
    if (now >= attend_at_) [[unlikely]]
      any |= attend_local(now);
    if (transports_->offences().is_anyone_condemned()) [[unlikely]]
      expel_condemned(now);
    // The fast path of local traffic: neither the network nor a retry is due.
    if (!transports_->is_network_due(now) && !is_retrying()) [[likely]]
      return (transports_->has_news() && react(now)) || any;
  }
  any |= collect(now);
  any |= transports_->expire(now);
  messages_.expire(now);
  if (transports_->offences().is_anyone_condemned()) [[unlikely]]
    expel_condemned(now);
  any |= react(now);
  messages_.progress(now);
  any |= active_.progress(now);
  any |= transports_->emit(transport::Transports::kTrainsInPass, now);
  if (transports_->flight().is_watch_due(now)) [[unlikely]]
    transports_->flight().watch(now, [&](std::uint32_t peer) { return messages_.is_awaiting(peer); });
  return any;
}

base::Instant Engine::next_deadline() const {
  const base::Instant pairs = pairs_ ? pairs_->next_deadline() : base::kNever;
  if (!transports_) return pairs;
  if (messages_.is_copying()) return base::Instant{};
  // Retries happen in passes, so one must follow soon.
  const base::Instant retry = is_retrying() ? now_ + std::chrono::milliseconds(1) : base::kNever;
  return std::min({transports_->next_deadline(now_), retry, messages_.next_deadline(), pairs});
}

// Arrivals -----------------------------------------------------------------------------------------------------------

std::size_t Engine::progress_into(Port& port, std::span<Completion> to, base::Instant now, bool& any) {
  ports_.begin_poll(port, to);
  any = progress(now);
  return ports_.end_poll(port, to);
}

/// Handles peers of this host that arrive or leave.
[[gnu::noinline]] bool Engine::attend_local(base::Instant now) {
  attend_at_ = now + kAttendEvery;
  // Most exposures of departed peers have ended with the notice of the loss, which has the cause. A peer that was not
  // known yet has no such notice.
  messages_.end_abandoned(Status::refused, now);
  ports_.forget_poller();  // everything that a departed peer has left is delivered
  shm_transport()->attend(now);
  const bool any = take_local(now);
  if (shm_transport()->partings().has_any()) [[unlikely]] {
    shm_transport()->partings().part_if([&](link::PeerHandle peer) {
      return !messages_.is_using(peer) && !active_.is_using(peer) &&
             !(pairs_ && pairs_->is_using(peer, transports_->address(peer)));
    });
  }
  transports_->vouch(now);
  return any;
}

bool Engine::take_local(base::Instant now) {
  shm::Transport& shm = *shm_transport();
  while (shm.next_peer()) {
    while (const link::Delivery* const message = shm.next_message(ports_.has_room())) deliver(*message, now);
    while (const link::Outcome* const outcome = shm.next_outcome(ports_.has_room())) end_outcome(*outcome);
  }
  return shm.has_found();
}

bool Engine::collect(base::Instant now) {
  const bool any = transports_->collect(now);
  while (const auto delivery = transports_->next_delivery(now)) {
    // Handle a peer's loss before a delivery of its next session, which would otherwise end with the last one.
    if (transports_->has_loss()) [[unlikely]]
      react(now);
    deliver(*delivery, now);
    if (transports_->offences().is_anyone_condemned()) [[unlikely]]
      expel_condemned(now);
  }
  return any;
}

void Engine::deliver(const link::Delivery& delivery, base::Instant now) {
  switch (delivery.is_first ? transport::client_of(delivery.envelope.operation)
                            : transport::Cookie::of(delivery.target).client) {
    case transport::Client::messages:
      return messages_.deliver(delivery, now);
    case transport::Client::active:
      return active_.deliver(delivery, now);
    case transport::Client::queue_pairs:
      return pairs().deliver(delivery, now);
  }
}

// Outcomes and notices -----------------------------------------------------------------------------------------------

[[gnu::noinline]] bool Engine::react(base::Instant now) {
  bool any = false;
  // Outcomes first: a notice of a loss guarantees that every message to the peer has had its outcome.
  while (const auto outcome = transports_->next_outcome()) {
    end_outcome(*outcome);
    any = true;
  }
  while (const auto notice = transports_->next_notice(now)) {
    take_notice(*notice, now);
    any = true;
  }
  return any;
}

void Engine::end_outcome(const link::Outcome& outcome) {
  if (outcome.owner < shm::Transport::kOfPairs) return messages_.end_short(outcome, now_);
  if (transport::Cookie::of(outcome.cookie).client == transport::Client::queue_pairs)
    return pairs_->end_outcome(outcome, now_);
  messages_.end_outcome(outcome, now_);
}

// Ends a message that has arrived in part: its sender is lost, or took it back.
void Engine::end_arrival(std::uint64_t target, Status status) {
  switch (transport::Cookie::of(target).client) {
    case transport::Client::messages:
      return messages_.end_arrival(target, status, now_);
    case transport::Client::active:
      return active_.end_arrival(target, status);
    case transport::Client::queue_pairs:
      return pairs_->end_arrival(target, status);
  }
}

}  // namespace fairlead::engine
