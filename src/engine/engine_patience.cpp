// What was cancelled and has not ended by itself, because a peer has a part in it: a message that it has begun, or an
// acknowledgement or an answer that it owes. It gets the give-up time, and then ends by force. So cancel() and
// close_port() end in time whatever the peer does.

#include "engine/engine.hpp"

namespace fairlead::engine {

void Engine::grant_patience(std::uint64_t name, base::Instant now) {
  impatient_.push_back({now + std::chrono::milliseconds(options_.get(Option::give_up_after)), name});
}

// Those that have ended by themselves go without waiting for their time: else each would wake the engine once.
void Engine::end_impatient(base::Instant now) {
  while (!impatient_.empty()) {
    const Impatient first = impatient_.front();
    const bool is_open = find_operation(first.name) != nullptr;
    if (is_open && first.at > now) return;
    impatient_.pop_front();
    if (!is_open) continue;
    ++counters_.ended_by_force;
    end_by_force(slot_of(first.name));
    if (find_operation(first.name) != nullptr) grant_patience(first.name, now);  // its outcome is on the way
  }
}

void Engine::end_by_force(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  // The transport reads the memory until the outcome. Only the end of the session, or of the connection, brings that.
  if (operation.is_link_pending)
    return transports_->offences().condemn(operation.peer, transport::Offence::holds_memory);
  switch (operation.kind) {
    case OperationKind::receive:
      return abandon_placements(slot);
    case OperationKind::expose_readable:
    case OperationKind::expose_writable:
      // Somebody had come too late for it, or lies.
      if (operation.is_carried_out) return complete(slot, Status::ok, operation.length_done);
      // The rest of a put that comes by a transport finds nobody, and its initiator is told so. A mapped_peer that has
      // claimed it has stopped in the middle, or something in the table says so that is not true.
      return complete(slot, Status::canceled, 0);
    default:
      operation.is_answer_pending = false;
      if (operation.status == Status::ok) operation.status = Status::canceled;
      return settle(slot);
  }
}

/// What comes of the messages that are on their way into it is thrown away from now on; those that are complete are
/// told.
void Engine::abandon_placements(std::uint32_t slot) {
  std::uint32_t next = operations_[slot].first_placement;
  while (next != kNone) {
    Placement& placement = placements_[next];
    next = placement.next;
    if (placement.state == Placement::State::filling) placement.state = Placement::State::abandoned;
  }
  finish_placements(slot);
}

}  // namespace fairlead::engine
