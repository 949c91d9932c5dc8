// What peers ask of the engine. Everything in a delivery comes from the network: sizes were checked against the
// datagram by the link, all else is checked here, and what is wrong is refused or dropped with a counter.

#include <algorithm>

#include "base/ensure.hpp"
#include "base/rare.hpp"
#include "engine/engine.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::engine {

void Engine::deliver(const link::Delivery& delivery, base::Instant now) {
  if (!delivery.is_first) {
    switch (transport::client_of(delivery.target)) {
      case transport::Client::queue_pairs:
        return flows_->deliver(delivery, now);
      case transport::Client::active:
        return active_.deliver(delivery, now);
      case transport::Client::messages:
        return place_chunk(delivery, slot_of(delivery.target), now);
    }
  }
  switch (delivery.envelope.operation) {
    case wire::Operation::message:
      return deliver_message(delivery, now);
    case wire::Operation::put:
      return deliver_put(delivery, now);
    case wire::Operation::get:
      return deliver_get(delivery, now);
    case wire::Operation::answer:
      return deliver_answer(delivery, now);
    case wire::Operation::done:
      return deliver_done(delivery);
    case wire::Operation::carried_out:
      return deliver_carried_out(delivery);
    case wire::Operation::flow_send:
    case wire::Operation::flow_write:
    case wire::Operation::flow_read:
    case wire::Operation::flow_atomic:
    case wire::Operation::flow_answer:
    case wire::Operation::flow_datagram:
      return flows().deliver(delivery, now);
    case wire::Operation::active_request:
    case wire::Operation::active_reply:
    case wire::Operation::active_returned:
    case wire::Operation::active_rejected:
      return active_.deliver(delivery, now);
    case wire::Operation::lent:
      return deliver_lent(delivery, now);
    case wire::Operation::given_back:
      return deliver_given_back(delivery);
  }
  ++counters_.dropped_unknown_operation;
}

// Messages -----------------------------------------------------------------------------------------------------------

void Engine::deliver_message(const link::Delivery& delivery, base::Instant now) {
  const std::uint32_t port = ports_.find_number(delivery.envelope.target_port);
  if (port == Ports::kNone) {
    ++counters_.dropped_no_port;
    return;
  }
  const std::uint32_t slot = match_receive(port, delivery.size);
  if (slot == kNone) {
    ++counters_.dropped_no_buffer;
    ports_.drop(port);
    return;
  }
  ++counters_.messages_received;
  place(delivery, slot, take_room(slot, delivery.size), now);
}

// The first posted buffer with room for the message (LNet's rule: the head, else the next that fits).
std::uint32_t Engine::match_receive(std::uint32_t port_slot, std::uint64_t size) {
  // Messages that wait behind an unfinished one take at most half of the placements: peers decide how many there are.
  if (placements_.used() >= options_.get(Option::operations_max)) [[unlikely]]
    return kNone;
  std::uint32_t slot = ports_[port_slot].posted.first();
  for (std::uint32_t walked = 0; slot != kNone && walked < kMatchWalkMax; ++walked) {
    const Operation& operation = operations_[slot];
    if (size <= operation.length - operation.fill) return slot;
    slot = operation.next;
  }
  return kNone;
}

// Gives the message the next bytes of the buffer, and retires the buffer when no further message may follow.
std::uint64_t Engine::take_room(std::uint32_t slot, std::uint64_t size) {
  Operation& operation = operations_[slot];
  const std::uint64_t offset = operation.fill;
  operation.fill += size;
  --operation.messages_left;
  if (operation.messages_left == 0 || operation.length - operation.fill < operation.size_min) {
    operation.is_busy = true;
    ports_[operation.port].posted.remove(operations_, slot);
  }
  return offset;
}

// A message is complete in the buffer. Events go out in the order of offsets, so it may have to wait for earlier ones.
void Engine::complete_message(std::uint32_t slot, std::uint64_t offset, std::uint64_t length,
                              const RemotePort& source) {
  const Operation& operation = operations_[slot];
  if (operation.first_placement != kNone) [[unlikely]] {
    const std::uint32_t placement = add_placement(slot, offset, length, source);
    placements_[placement].state = Placement::State::complete;
    return;
  }
  const bool is_final = operation.is_busy;
  ports_.produce(operation.port, {.cookie = operation.cookie,
                                  .length = length,
                                  .offset = offset,
                                  .time_ns = now_.time_since_epoch().count(),
                                  .source = source,
                                  .status = Status::ok,
                                  .is_final = is_final});
  if (is_final) release_operation(slot);
}

// Tells of all messages that are finished and have none unfinished before them; ends the receive after its last one.
void Engine::finish_placements(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  Status status = Status::canceled;
  while (operation.first_placement != kNone) {
    const std::uint32_t first = operation.first_placement;
    const Placement placement = placements_[first];
    if (placement.state == Placement::State::filling) return;
    operation.first_placement = placement.next;
    if (operation.first_placement == kNone) operation.last_placement = kNone;
    if (placement.state == Placement::State::abandoned) {
      placements_[first].operation = 0;  // further chunks are thrown away
    } else {
      placements_.release(first);
    }
    const bool is_last = operation.is_busy && operation.first_placement == kNone;
    if (placement.state != Placement::State::complete) {
      counters_.dropped_sender_lost += placement.state == Placement::State::failed;
      status = operation.is_cancel_wanted ? Status::canceled : placement.status;
      continue;
    }
    const bool is_final = is_last && !(operation.is_cancel_wanted && operation.messages_left > 0);
    ports_.produce(operation.port, {.cookie = operation.cookie,
                                    .length = placement.size,
                                    .offset = placement.offset,
                                    .time_ns = now_.time_since_epoch().count(),
                                    .source = placement.source,
                                    .status = Status::ok,
                                    .is_final = is_final});
    if (is_final) {
      release_operation(slot);
      return;
    }
  }
  if (operation.is_busy) complete(slot, status, 0);
}

// Bulk ---------------------------------------------------------------------------------------------------------------

Status Engine::check_exposure(std::uint64_t key, std::uint32_t port, OperationKind kind, std::uint64_t length,
                              std::uint32_t& slot_out) {
  const auto slot = static_cast<std::uint32_t>(key & ((1ULL << kKeySlotBits) - 1));
  const std::uint32_t port_slot = ports_.find_number(port);
  Operation* exposure = slot < operations_.size() ? &operations_[slot] : nullptr;
  if (exposure == nullptr || key == 0 || exposure->key != key || exposure->port != port_slot || exposure->is_busy) {
    ++counters_.refused_stale;
    return Status::stale;
  }
  if (exposure->kind != kind) {
    ++counters_.refused_not_permitted;
    return Status::not_permitted;
  }
  const bool fits = kind == OperationKind::expose_writable ? length <= exposure->length : exposure->length <= length;
  if (!fits) {
    ++counters_.refused_too_big;
    return Status::too_big;
  }
  if (!withdraw_exposure(slot)) {
    ++counters_.refused_stale;
    return Status::stale;
  }
  // One transfer per exposure: from here on the key names nothing.
  exposure->is_busy = true;
  exposure->key = 0;
  slot_out = slot;
  return Status::ok;
}

void Engine::deliver_put(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& put = delivery.envelope;
  std::uint32_t slot = kNone;
  const Status status =
      check_exposure(put.key ^ epoch_, put.target_port, OperationKind::expose_writable, delivery.size, slot);
  if (status != Status::ok) {
    if (status == Status::stale)
      transports_->offences().note_wrong_secret(delivery.peer, transport::Secret::exposure, now_);
    // Later chunks of a refused put have no target and are thrown away.
    answer(delivery.peer,
           {.operation = wire::Operation::done, .status = std::to_underlying(status), .cookie = put.cookie}, 0, now);
    return;
  }
  ++counters_.puts_received;
  operations_[slot].other = {transports_->address(delivery.peer), put.source_port};
  place(delivery, slot, 0, now);
}

void Engine::deliver_get(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& get = delivery.envelope;
  std::uint32_t slot = kNone;
  const Status status = check_exposure(get.key ^ epoch_, get.target_port, OperationKind::expose_readable, get.a, slot);
  if (status != Status::ok) {
    if (status == Status::stale)
      transports_->offences().note_wrong_secret(delivery.peer, transport::Secret::exposure, now_);
    answer(delivery.peer,
           {.operation = wire::Operation::done, .status = std::to_underlying(status), .cookie = get.cookie}, 0, now);
    return;
  }
  ++counters_.gets_received;
  Operation& exposure = operations_[slot];
  exposure.other = {transports_->address(delivery.peer), get.source_port};
  exposure.peer = delivery.peer;
  exposure.is_link_pending = true;
  answer(delivery.peer, {.operation = wire::Operation::answer, .cookie = get.cookie}, name_of(slot), now);
}

void Engine::deliver_answer(const link::Delivery& delivery, base::Instant now) {
  Operation* operation = find_operation(delivery.envelope.cookie);
  if (operation == nullptr || operation->kind != OperationKind::get || !operation->is_answer_pending ||
      operation->is_busy || operation->peer != delivery.peer) {
    ++counters_.dropped_late_answer;
    return;
  }
  if (delivery.size > operation->length) {
    ++counters_.refused_too_big;
    operation->is_answer_pending = false;
    operation->status = Status::too_big;
    settle(slot_of(delivery.envelope.cookie));
    return;
  }
  operation->is_busy = true;
  place(delivery, slot_of(delivery.envelope.cookie), 0, now);
}

void Engine::deliver_done(const link::Delivery& delivery) {
  const wire::Envelope& done = delivery.envelope;
  if (done.cookie == 0) return;  // the peer only asks whether we are still here
  Operation* operation = find_operation(done.cookie);
  if (operation == nullptr || operation->peer != delivery.peer || !operation->is_answer_pending ||
      (operation->kind != OperationKind::put && operation->kind != OperationKind::get)) {
    ++counters_.dropped_late_answer;
    return;
  }
  operation->is_answer_pending = false;
  if (done.status != 0) {
    operation->status =
        done.status <= std::to_underlying(Status::system) ? static_cast<Status>(done.status) : Status::system;
  } else if (operation->kind == OperationKind::put) {
    operation->length_done = operation->length;
  } else {
    operation->status = Status::system;  // a get ends well only by its answer
  }
  settle(slot_of(done.cookie));
}

// Completes a transfer when both its ends have come: the link's outcome and the target's answer.
void Engine::settle(std::uint32_t slot) {
  const Operation& operation = operations_[slot];
  if (operation.is_link_pending || operation.is_answer_pending) return;
  waiting_[operation.peer.slot].remove(operations_, slot);
  if (operation.kind == OperationKind::loan && operation.status == Status::not_available) return send_instead(slot);
  complete(slot, operation.status, operation.length_done);
}

void Engine::answer(link::PeerHandle peer, const wire::Envelope& envelope, std::uint64_t exposure, base::Instant now) {
  // Answers to one peer keep their order.
  const bool has_to_wait = deferred_.has(peer) || base::rare("engine: an answer waits for a later pass");
  const Status status = has_to_wait ? Status::again : submit_answer(peer, envelope, exposure, now);
  if (status != Status::again) return;
  if (const auto excess = deferred_.add(peer, {envelope, exposure}, now))
    transports_->offences().condemn(*excess, transport::Offence::takes_no_answers);
}

Status Engine::submit_answer(link::PeerHandle peer, const wire::Envelope& envelope, std::uint64_t exposure,
                             base::Instant now) {
  link::Outgoing message{.envelope = envelope, .pieces = {}, .size = 0, .cookie = 0, .wants_outcome = false};
  Operation* readable = find_operation(exposure);
  if (readable != nullptr) {
    message.pieces = readable->memory;
    message.size = readable->length;
    message.cookie = exposure;
    message.wants_outcome = true;
  }
  const Status status = transports_->submit(peer, message, now);
  if (status != Status::ok && status != Status::again && readable != nullptr) {
    readable->is_link_pending = false;
    complete(slot_of(exposure), status, 0);
  }
  return status;
}

// Placing ------------------------------------------------------------------------------------------------------------

std::uint32_t Engine::add_placement(std::uint32_t slot, std::uint64_t offset, std::uint64_t size,
                                    const RemotePort& source) {
  const std::uint32_t added = placements_.acquire();
  ENSURE(added != kNone, "more placements than the slab can hold ({})", placements_.used());
  placements_[added] = {.operation = name_of(slot), .offset = offset, .size = size, .source = source};
  Operation& operation = operations_[slot];
  if (operation.kind == OperationKind::receive) {
    (operation.last_placement == kNone ? operation.first_placement : placements_[operation.last_placement].next) =
        added;
    operation.last_placement = added;
  }
  return added;
}

// The first bytes of a message whose memory is chosen: at once if it came whole, else by chunks from here on.
void Engine::place(const link::Delivery& delivery, std::uint32_t slot, std::uint64_t offset, base::Instant now) {
  const Operation& operation = operations_[slot];
  if (delivery.reassembly == link::Delivery::kWhole) [[likely]] {
    operation.permit(offset, delivery.size).write(0, delivery.bytes);
    if (operation.kind == OperationKind::receive) {
      complete_message(slot, offset, delivery.size,
                       {transports_->address(delivery.peer), delivery.envelope.source_port});
    } else {
      end_transfer(slot, delivery, now);
    }
    return;
  }
  const std::uint32_t placement =
      add_placement(slot, offset, delivery.size, {transports_->address(delivery.peer), delivery.envelope.source_port});
  transports_->set_target(delivery.peer, delivery.reassembly, pack_name(placement, placements_.generation(placement)));
  place_chunk(delivery, placement, now);
}

void Engine::place_chunk(const link::Delivery& delivery, std::uint32_t slot, base::Instant now) {
  if (delivery.target == 0 && !delivery.is_first) return;  // refused or unwanted from its first chunk on
  Placement& placement = placements_[slot];
  const Operation* operation = find_operation(placement.operation);
  // A get that was cancelled half-way is gone, and its memory with it.
  if (operation != nullptr) {
    operation->permit(placement.offset, placement.size).write(delivery.offset, delivery.bytes);
  }
  if (!delivery.is_last) return;
  if (operation == nullptr) {
    ++counters_.dropped_late_answer;
    placements_.release(slot);
    const wire::Envelope& whole = delivery.envelope;
    if (whole.operation != wire::Operation::put) return;
    answer(delivery.peer,
           {.operation = wire::Operation::done, .status = std::to_underlying(Status::stale), .cookie = whole.cookie}, 0,
           now);
    return;
  }
  const std::uint32_t target = slot_of(placement.operation);
  if (operation->kind == OperationKind::receive) {
    placement.state = Placement::State::complete;
    finish_placements(target);
    return;
  }
  placements_.release(slot);
  end_transfer(target, delivery, now);
}

// All data of a put or of a get's answer is in place.
void Engine::end_transfer(std::uint32_t slot, const link::Delivery& delivery, base::Instant now) {
  Operation& operation = operations_[slot];
  if (operation.kind == OperationKind::expose_writable) {
    answer(delivery.peer, {.operation = wire::Operation::done, .cookie = delivery.envelope.cookie}, 0, now);
    complete(slot, Status::ok, delivery.size);
    return;
  }
  operation.is_answer_pending = false;
  operation.length_done = delivery.size;
  settle(slot);
}

// The sender of a half-received message is lost.
void Engine::end_arrival(std::uint64_t target, Status status) {
  switch (transport::client_of(target)) {
    case transport::Client::queue_pairs:
      return flows_->end_arrival(target, status);
    case transport::Client::active:
      return active_.end_arrival(target, status);
    case transport::Client::messages:
      return fail_placement(target, status);
  }
}

void Engine::fail_placement(std::uint64_t target, Status status) {
  Placement* placement = placements_.find(slot_of(target), generation_of(target));
  if (placement == nullptr) return;
  const std::uint32_t slot = slot_of(placement->operation);
  const Operation* operation = find_operation(placement->operation);
  if (operation != nullptr && operation->kind == OperationKind::receive) {
    placement->state = Placement::State::failed;
    placement->status = status;
    finish_placements(slot);
    return;
  }
  placements_.release(slot_of(target));
  // A get ends with its peer, like all that wait for it; exposed memory ends here.
  if (operation != nullptr && operation->kind == OperationKind::expose_writable) complete(slot, status, 0);
}

}  // namespace fairlead::engine
