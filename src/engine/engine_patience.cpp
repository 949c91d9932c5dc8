// What was cancelled and has not ended by itself, because a peer has a part in it: a message that it has begun, or an
// acknowledgement or an answer that it owes. It gets the give-up time, and then ends by force. So cancel() and
// close_port() end in time whatever the peer does.

#include "engine/engine.hpp"

namespace fairlead::engine {

void Engine::grant_patience(std::uint64_t name, base::Instant now) {
  impatient_.push_back({now + std::chrono::milliseconds(options_.get(Option::give_up_after)), name});
}

void Engine::end_impatient(base::Instant now) {
  while (!impatient_.empty() && impatient_.front().at <= now) {
    const std::uint64_t name = impatient_.front().name;
    impatient_.pop_front();
    if (find_operation(name) == nullptr) continue;
    ++counters_.ended_by_force;
    end_by_force(slot_of(name));
    if (find_operation(name) != nullptr) grant_patience(name, now);  // its outcome is on the way
  }
  expel_condemned(now);
}

void Engine::end_by_force(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  // The link reads the memory until the outcome. Only the end of the session brings that.
  if (operation.is_link_pending) {
    if (!shm::Lane::has(operation.peer))
      transports_->offences().condemn(operation.peer, transport::Offence::holds_memory);
    return;
  }
  switch (operation.kind) {
    case OperationKind::receive:
      return abandon_placements(slot);
    case OperationKind::expose_readable:
    case OperationKind::expose_writable:
      // The rest of the put finds nobody, and its initiator is told so.
      if (operation.is_busy) complete(slot, Status::canceled, 0);
      return;
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
