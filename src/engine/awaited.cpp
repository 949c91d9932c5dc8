#include "engine/awaited.hpp"

namespace fairlead::engine {

void Awaited::add(std::uint32_t slot, base::Instant now) {
  const link::PeerHandle peer = context_.operations[slot].peer;
  context_.operations.append(waiting_[peer.slot], slot);
  const bool is_asked = context_.operations[slot].kind != OperationKind::loan && !shm::Transport::has(peer);
  if (ask_at_ == base::kNever && is_asked) ask_at_ = now + ask_after();
}

bool Awaited::is_over(std::uint32_t slot) {
  const Operation& operation = context_.operations[slot];
  if (operation.is_link_pending || operation.is_answer_pending) return false;
  context_.operations.remove(waiting_[operation.peer.slot], slot);
  return true;
}

std::uint32_t Awaited::take_lost(link::PeerHandle peer, Status status) {
  OperationChain* const chain = waiting_.find(peer.slot);
  if (chain == nullptr || chain->is_empty()) return Operations::kNone;
  const std::uint32_t slot = chain->first();
  Operation& operation = context_.operations[slot];
  operation.is_answer_pending = operation.is_link_pending = false;
  if (operation.status == Status::ok) operation.status = status;
  return slot;
}

bool Awaited::has(std::uint32_t peer_slot) {
  const OperationChain* const chain = waiting_.find(peer_slot);
  return chain != nullptr && !chain->is_empty();
}

// A peer may acknowledge a put or a get and die before it answers. Nothing is in flight to it then, so the link does
// not notice. An empty message reveals the loss: a living peer acknowledges it.
void Awaited::ask(base::Instant now) {
  ask_at_ = base::kNever;
  for (const OperationChain& chain : waiting_.of_link()) {
    if (chain.is_empty()) continue;
    ask_at_ = now + ask_after();
    context_.transports->ask(context_.operations[chain.first()].peer, ask_after(), now);
  }
}

}  // namespace fairlead::engine
