#include "engine/receives.hpp"

#include <memory>
#include <utility>

#include "base/ensure.hpp"
#include "base/scatter.hpp"

namespace fairlead::engine {

Status Receives::post(PortHandle handle, const Receive& receive, OperationHandle& handle_out) {
  Port* const port = context_.ports.find(handle);
  if (port == nullptr) return Status::stale;
  const std::uint64_t size = base::scatter_size(receive.memory);
  if (receive.size_min == 0 || receive.size_min > size || receive.messages_max == 0) return Status::invalid;
  const std::uint32_t slot = context_.operations.make(OperationKind::receive, handle, receive.cookie);
  if (slot == kNone) return Status::no_memory;
  Operation& operation = context_.operations[slot];
  operation.memory = receive.memory;
  operation.length = size;
  operation.size_min = receive.size_min;
  operation.messages_left = receive.messages_max;
  operation.takes_loans = receive.takes_loans;
  context_.operations.append(port->posted, slot);
  handle_out = context_.operations.handle_of(slot);
  return Status::ok;
}

Receives::Match Receives::find(std::uint32_t port_number, std::uint64_t size) {
  const std::uint32_t port_slot = context_.ports.find_number(port_number);
  if (port_slot == kNone) return drop(kNone);
  Port& port = context_.ports[port_slot];
  std::uint32_t slot = find_room(port, size);
  if (slot == kNone && port.spares && port.spares->plan.spares && size <= port.spares->plan.spares->size())
    slot = post_spare(port, port_slot);
  if (slot == kNone) return drop(port_slot);
  const Match found{&context_.operations[slot], slot};
  if (slot != port.posted.first()) return found;
  last_number_ = port_number;
  return last_ = found;
}

std::uint32_t Receives::find_room(const Port& port, std::uint64_t size) {
  std::uint32_t slot = port.posted.first();
  for (std::uint32_t walked = 0; slot != kNone && walked < kWalkMax; ++walked) {
    const Operation& operation = context_.operations[slot];
    if (size <= operation.length - operation.fill) return slot;
    slot = operation.next;
  }
  return kNone;
}

/// Drops a message: its port does not exist, or none of the port's buffers takes it.
Receives::Match Receives::drop(std::uint32_t port_slot) {
  if (port_slot == kNone) {
    ++context_.counters.dropped_no_port;
  } else {
    ++context_.counters.dropped_no_buffer;
    context_.ports.drop(port_slot);
  }
  return {};
}

void Receives::retire(std::uint32_t slot) {
  Operation& operation = context_.operations[slot];
  context_.operations.remove(context_.ports[operation.port].posted, slot);
  const bool was_posted = !std::exchange(operation.is_busy, true);
  if (last_.slot == slot) last_ = {};
  if (!operation.is_spare || !was_posted) [[likely]]
    return;
  Port& port = context_.ports[operation.port];
  --port.spares->posted;
  fill_up(port, operation.port);
}

void Receives::set_spares(PortHandle handle, const SparePlan& plan) {
  Port* const port = context_.ports.find(handle);
  if (port == nullptr || (!plan.spares && !port->spares)) return;
  if (!port->spares) port->spares = std::make_unique<PortSpares>();
  port->spares->plan = plan;
  fill_up(*port, handle.slot);
}

SpareCounts Receives::spare_counts(PortHandle handle) {
  SpareCounts counts;
  const Port* const port = context_.ports.find(handle);
  if (port == nullptr || !port->spares) return counts;
  counts.posted = port->spares->posted;
  const std::uint32_t wanted = port->spares->plan.spares ? port->spares->plan.length : 0;
  counts.missing = wanted > counts.posted ? wanted - counts.posted : 0;
  context_.operations.for_each([&](std::uint32_t, const Operation& operation) {
    counts.unended += operation.is_spare && operation.port == handle.slot ? 1 : 0;
  });
  return counts;
}

/// Posts one spare. Returns kNone if there is none, no room for its events, or too many operations; a spare then stays
/// in the queue.
std::uint32_t Receives::post_spare(Port& port, std::uint32_t port_slot) {
  PortSpares& own = *port.spares;
  SpareReceives& spares = *own.plan.spares;
  if (port.spares_granted.load(std::memory_order_acquire) == 0) return kNone;
  Spare* const spare = spares.take(own.plan.colour);
  if (spare == nullptr) return kNone;
  const std::uint32_t slot = context_.operations.make(OperationKind::receive, {port_slot, 0}, spare->cookie);
  if (slot == kNone) {
    spares.put(*spare, own.plan.colour);
    return kNone;
  }
  port.spares_granted.fetch_sub(1, std::memory_order_relaxed);
  ++own.posted;
  Operation& operation = context_.operations[slot];
  operation.memory = spare->memory;
  operation.length = spares.size();
  operation.size_min = own.plan.size_min;
  operation.messages_left = own.plan.messages_max;
  operation.takes_loans = own.plan.takes_loans;
  operation.is_spare = true;
  spare->operation = context_.operations.handle_of(slot);
  context_.operations.append(port.posted, slot);
  return slot;
}

/// Posts as many as are planned ahead.
void Receives::fill_up(Port& port, std::uint32_t port_slot) {
  PortSpares& own = *port.spares;
  if (!own.plan.spares) return;
  const auto fill = [&] {
    while (own.posted < own.plan.length && post_spare(port, port_slot) != kNone) continue;
    return own.posted >= own.plan.length;
  };
  if (fill()) return;
  own.plan.spares->want();
  fill();  // for spares that came back before want() was visible
}

std::uint32_t Receives::begin_placement(std::uint32_t slot, std::uint64_t offset, std::uint64_t size,
                                        const RemotePort& source) {
  const std::uint32_t added = context_.placements.acquire();
  ENSURE(added != kNone, "more placements than the slab can hold ({})", context_.placements.used());
  context_.placements[added] = {
      .operation = context_.operations.name_of(slot), .offset = offset, .size = size, .source = source};
  if (context_.operations[slot].kind == OperationKind::receive) append(slot, added);
  return added;
}

void Receives::append(std::uint32_t slot, std::uint32_t placement) {
  Operation& operation = context_.operations[slot];
  const std::uint32_t last = operation.last_placement;
  (last == kNone ? operation.first_placement : context_.placements[last].next) = placement;
  operation.last_placement = placement;
}

/// Queues a complete message behind an unfinished one.
void Receives::wait(std::uint32_t slot, std::uint64_t offset, std::uint64_t length, const RemotePort& source) {
  context_.placements[begin_placement(slot, offset, length, source)].state = Placement::State::complete;
}

void Receives::end_placement(std::uint32_t placement, Status status, base::Instant now) {
  Placement& ended = context_.placements[placement];
  ended.state = status == Status::ok ? Placement::State::complete : Placement::State::failed;
  ended.status = status;
  finish(slot_of(ended.operation), now);
}

// Reports all finished messages that precede the first unfinished one. Ends the receive after its last message.
void Receives::finish(std::uint32_t slot, base::Instant now) {
  const Operation& operation = context_.operations[slot];
  Status status = Status::canceled;
  while (operation.first_placement != kNone) {
    if (context_.placements[operation.first_placement].state == Placement::State::filling) return;
    if (take_first(slot, status, now)) return context_.operations.release(slot);
  }
  if (operation.is_busy) context_.operations.complete(slot, status, 0, now);
}

/// Removes the first message and reports it if it is complete. Returns true if that was the receive's last event.
bool Receives::take_first(std::uint32_t slot, Status& status, base::Instant now) {
  Operation& operation = context_.operations[slot];
  const std::uint32_t first = operation.first_placement;
  const Placement placement = context_.placements[first];
  operation.first_placement = placement.next;
  if (operation.first_placement == kNone) operation.last_placement = kNone;
  if (placement.state == Placement::State::abandoned) {
    context_.placements[first].operation = 0;  // further chunks are discarded
  } else {
    context_.placements.release(first);
  }
  if (placement.state != Placement::State::complete) {
    context_.counters.dropped_sender_lost += placement.state == Placement::State::failed;
    status = operation.is_cancel_wanted ? Status::canceled : placement.status;
    return false;
  }
  const bool is_last = operation.is_busy && operation.first_placement == kNone;
  const bool is_final = is_last && !(operation.is_cancel_wanted && operation.messages_left > 0);
  context_.ports.produce(operation.port, {.cookie = operation.cookie,
                                          .length = placement.size,
                                          .offset = placement.offset,
                                          .time_ns = now.time_since_epoch().count(),
                                          .source = placement.source,
                                          .status = Status::ok,
                                          .is_final = is_final});
  return is_final;
}

void Receives::cancel(std::uint32_t slot, base::Instant now) {
  retire(slot);
  finish(slot, now);
}

void Receives::abandon(std::uint32_t slot, base::Instant now) {
  for (std::uint32_t next = context_.operations[slot].first_placement; next != kNone;) {
    Placement& placement = context_.placements[next];
    next = placement.next;
    if (placement.state == Placement::State::filling) placement.state = Placement::State::abandoned;
  }
  finish(slot, now);
}

}  // namespace fairlead::engine
