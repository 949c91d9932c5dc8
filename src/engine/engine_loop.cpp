// One pass: collect from the path, react, run timers, emit. Bounded in every part, so that a busy peer can keep
// neither the caller nor the other peers waiting for long.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/rare.hpp"
#include "engine/engine.hpp"
#include "engine/flows.hpp"

namespace fairlead::engine {

bool Engine::progress(base::Instant now) {
  now = now_ = std::max(now, now_);  // the threads' clocks differ by some 100 ns
  bool any = flows_ && flows_->progress(now);
  if (!link_) return any;
  if (lane() != nullptr) {
    any |= collect_lane(now);
    // The straight line of traffic inside the host: nothing of the network is due.
    if (!is_network_due(now) && deferred_.empty() && withdrawing_.empty()) [[likely]]
      return react(now) || any;
  }
  any |= collect(now);
  if (now >= link_->next_deadline() && !base::rare("engine: timers wait for the next pass")) {
    link_->expire(now);
    any = true;
  }
  any |= react(now);
  if (!withdrawing_.empty()) [[unlikely]]
    retry_withdrawals();
  if (!deferred_.empty()) [[unlikely]]
    retry_deferred(now);
  if (now >= ask_at_) [[unlikely]]
    ask_for_answers(now);
  any |= emit(kTrainsInPass, now);
  if (flight_->is_watch_due(now)) [[unlikely]] {
    flight_->watch(now, [&](std::uint32_t peer) {
      const OperationChain* chain = waiting_.find(peer);
      return chain != nullptr && !chain->is_empty();
    });
  }
  return any;
}

base::Instant Engine::next_deadline() const {
  const base::Instant flows = flows_ ? flows_->next_deadline() : base::kNever;
  if (!link_) return flows;
  // Answers that wait for room are tried again in each pass, so a pass has to come.
  // So are withdrawals that a peer holds up.
  const base::Instant retry =
      deferred_.empty() && withdrawing_.empty() ? base::kNever : now_ + std::chrono::milliseconds(1);
  const base::Instant of_lane = lane() ? lane()->next_deadline() : base::kNever;
  if (is_emit_cut_short_) return now_;
  return std::min(
      {link_->next_deadline(), path_->next_deadline(), flight_->next_deadline(), retry, ask_at_, flows, of_lane});
}

// A look at the network is a system call, a look at the lane is not. While only the lane has traffic, the network and
// the comings and goings of the lane's peers are looked at now and then.
bool Engine::is_network_due(base::Instant now) {
  if (!lane()->has_peers()) return true;
  if (network_looks_ < kNetworkLooks) {
    ++network_looks_;
    return true;
  }
  if (now < network_look_at_ && link_->counters().messages_pending == 0) return false;
  network_look_at_ = now + kNetworkLookEvery;
  return true;
}

bool Engine::collect(base::Instant now) {
  std::array<path::Arrival, kArrivalsInPass> arrivals;
  const std::size_t taken_max = base::rare("engine: a pass takes one arrival") ? 1 : kArrivalsInPass;
  const std::size_t count = path_->collect(std::span(arrivals).first(taken_max), now);
  for (const path::Arrival& arrival : std::span(arrivals).first(count)) {
    auto rest = std::span<const std::byte>(arrival.bytes);
    const std::size_t step = arrival.datagram_size == 0 ? rest.size() : arrival.datagram_size;
    do {
      link_->receive(arrival.from, rest.first(std::min(step, rest.size())), now,
                     static_cast<std::uint32_t>(options_.get(Option::datagram_size)));
      while (const auto delivery = link_->next_delivery()) deliver(*delivery, now);
      rest = rest.subspan(std::min(step, rest.size()));
    } while (!rest.empty());
    if (const auto peer = link_->find(arrival.from)) {
      flight_->received(*peer, arrival.bytes.size(), now);
      const auto change = hot_peers_.count(peer->slot, arrival.from);
      if (change.cooled) path_->set_hot(*change.cooled, false);
      if (change.heated) path_->set_hot(*change.heated, true);
    }
  }
  std::array<path::Unreachable, kArrivalsInPass> unreachable;
  const std::size_t refused = path_->unreachable(unreachable);
  for (const path::Unreachable& hint : std::span(unreachable).first(refused)) {
    const auto peer = hint.system_errno == EMSGSIZE ? link_->find(hint.to) : std::nullopt;
    if (peer) {
      link_->set_datagram_size_max(*peer, path_->datagram_size_max(hint.to), now);
    } else if (hint.system_errno != EMSGSIZE) {
      link_->unreachable(hint.to, now);
    }
  }
  if (count > 0) network_looks_ = 0;
  return count > 0 || refused > 0;
}

bool Engine::react(base::Instant now) {
  if (!link_->has_news()) [[likely]]
    return false;
  bool any = false;
  while (const auto end = lane() ? lane()->next_lost() : std::nullopt) {
    end_near(*end);
    any = true;
  }
  // Outcomes first: a peer's loss promises that every message to it has had its outcome.
  while (const auto outcome = link_->next_outcome()) {
    end_outcome(*outcome);
    any = true;
  }
  while (const auto notice = link_->next_notice()) {
    end_peer(*notice, now);
    any = true;
  }
  return any;
}

void Engine::end_outcome(const link::Outcome& outcome) {
  if (Flows::is_ours(outcome.cookie)) return flows_->end_outcome(outcome, now_);
  Operation* operation = find_operation(outcome.cookie);
  if (operation == nullptr) return;  // fire and forget
  const std::uint32_t slot = slot_of(outcome.cookie);
  operation->is_link_pending = false;
  if (outcome.status != Status::ok && operation->kind != OperationKind::expose_readable) [[unlikely]]
    flight_->failed(operation->peer, now_);
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

// A peer of the lane. From now on it is reached another way.
void Engine::end_lane_peer(const link::Notice& notice, base::Instant now) {
  last_peer_address_ = {};
  const base::SocketAddress& address = link_->address(notice.peer);
  if (notice.kind == link::Notice::Kind::connected) {
    losses_.erase(address);
    const path::ShmPeer* there = lane()->neighbour(notice.peer);
    const auto denial = there != nullptr ? there->process.denial() : path::ForeignMemory::Denial::none;
    flight_->report(fmt::format("{} is reached through shared memory{}{}\n", address.to_string(),
                                denial == path::ForeignMemory::Denial::none ? "" : "; other memory through the ring: ",
                                path::ForeignMemory::reason(denial)));
  } else if (notice.kind == link::Notice::Kind::reassembly_lost) {
    Flows::is_ours(notice.target) ? flows_->end_arrival(notice.target) : fail_placement(notice.target, notice.status);
  } else {
    if (losses_.size() < kLossesRemembered || losses_.contains(address)) losses_[address] = {notice, now};
    peer_losses_.add(address, way_of(notice.peer), notice.status);
    end_waiting(notice.peer, notice.status);
    if (flows_) flows_->end_peer(notice.peer, notice.status, now);
    end_abandoned(notice.status);
  }
}

void Engine::end_peer(const link::Notice& notice, base::Instant now) {
  if (Lane::has(notice.peer)) return end_lane_peer(notice, now);
  switch (notice.kind) {
    case link::Notice::Kind::connected: {
      const base::SocketAddress address = link_->address(notice.peer);
      link_->set_datagram_size_max(notice.peer, path_->datagram_size_max(address), now);
      losses_.erase(address);
      flight_->connected(notice.peer, now);
      if (lane() && !lane()->seek(address, now) && !lane()->reason(address).empty())
        flight_->report(fmt::format("{} is reached over UDP: {}\n", address.to_string(), lane()->reason(address)));
      return;
    }
    case link::Notice::Kind::reassembly_lost:
      if (Flows::is_ours(notice.target)) return flows_->end_arrival(notice.target);
      fail_placement(notice.target, notice.status);
      return;
    case link::Notice::Kind::lost: {
      const base::SocketAddress address = link_->address(notice.peer);
      if (losses_.size() < kLossesRemembered || losses_.contains(address)) losses_[address] = {notice, now};
      peer_losses_.add(address, way_of(notice.peer), notice.status);
      flight_->lost(notice.peer, notice.status, describe_peer(address, now), now);
      if (hot_peers_.forget(notice.peer.slot)) path_->set_hot(address, false);
      end_waiting(notice.peer, notice.status);
      if (flows_) flows_->end_peer(notice.peer, notice.status, now);
      return;
    }
  }
}

// Each waiting answer is tried once, in turn: one peer without room does not hold up the others.
void Engine::retry_deferred(base::Instant now) {
  constexpr std::size_t kTriesInPass = 256;
  for (std::size_t tries = std::min(deferred_.size(), kTriesInPass); tries > 0; --tries) {
    const Deferred first = deferred_.front();
    deferred_.pop_front();
    if (submit_answer(first.peer, first.envelope, first.exposure, now) == Status::again) deferred_.push_back(first);
  }
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
    const link::PeerHandle peer = operations_[chain.first()].peer;
    const link::PeerFacts facts = link_->facts(peer);
    if (!facts.is_connected || facts.segments_in_flight != 0 || facts.messages_queued != 0 ||
        now - facts.last_heard < ask_after())
      continue;
    // If the link has no room for it there is traffic enough.
    link_->submit(peer, {.envelope = {.operation = wire::Operation::done}, .pieces = {}, .wants_outcome = false}, now);
  }
}

// What was sent is looked after (acknowledgements, losses, round trips) between passes, so one pass sends a few full
// trains at most; the next one follows at once.
bool Engine::emit(std::size_t trains_max, base::Instant now) {
  std::size_t bytes = 0;
  const std::uint32_t datagrams_max = base::rare("engine: trains of one datagram") ? 1 : path_->train_datagrams_max();
  for (std::size_t trains = 0; trains < trains_max; ++trains) {
    if (bytes >= kBytesInPass) {
      is_emit_cut_short_ = true;
      break;
    }
    if (!link_->next_train(now, path_->train_bytes_max(), datagrams_max, train_)) {
      is_emit_cut_short_ = false;
      return trains != 0;
    }
    const path::Train train{.to = train_.to,
                            .pieces = std::span<const iovec>(train_.pieces, train_.piece_count),
                            .datagram_size = train_.datagram_size};
    bytes += train_.bytes;
    const bool is_taken = path_->send({&train, 1}, now) == 1;
    flight_->sent(train_, is_taken, now);
    if (!is_taken) [[unlikely]] {
      ++counters_.trains_not_taken;
      link_->take_back(train_, now);
      is_emit_cut_short_ = false;  // the path says when it goes on
      break;
    }
  }
  return true;
}

}  // namespace fairlead::engine
