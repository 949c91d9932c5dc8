// Deliveries, outcomes and losses for the messages' client. Everything in a delivery comes from a peer. The transport
// has checked the sizes against the datagram or record; this code checks all else. It refuses or drops what is wrong,
// and counts it.

#include "engine/messages.hpp"

#include "base/ensure.hpp"

namespace fairlead::engine {
namespace {

/// Returns whether the sender of a message wants the receiver's report.
bool is_confirmed(const wire::Envelope& message) {
  return (message.flags & wire::MessageFlags::kConfirm) != 0;
}

}  // namespace

void Messages::deliver(const link::Delivery& delivery, base::Instant now) {
  if (!delivery.is_good()) [[unlikely]]
    return;  // the sender took it back
  if (!delivery.is_first) return place_chunk(delivery, transport::Cookie::of(delivery.target).place, now);
  switch (delivery.envelope.operation) {
    case wire::Operation::message:
      return deliver_message(delivery, now);
    case wire::Operation::put:
      if (!has_place_for(delivery))
        return answers_.tell_done(delivery.peer, delivery.envelope.cookie, Status::no_memory, now);
      return place(delivery, transfers_.deliver_put(delivery, now), 0, now);
    case wire::Operation::get:
      return transfers_.deliver_get(delivery, now);
    case wire::Operation::answer:
      return deliver_answer(delivery, now);
    case wire::Operation::done:
      return settle(transfers_.deliver_done(delivery, now), now);
    case wire::Operation::carried_out:
      return await_others(exposures_.deliver_carried_out(delivery, now), now);
    case wire::Operation::lent:
      return loans_.deliver(delivery, now);
    case wire::Operation::given_back:
      return settle(loans_.deliver_given_back(delivery), now);
    case wire::Operation::told:
      return deliver_told(delivery, now);
    default:
      ++context_.counters.dropped_unknown_operation;
  }
}

void Messages::deliver_message(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& envelope = delivery.envelope;
  if (delivery.is_short()) [[likely]] {
    const bool is_taken = receives_.take(context_.transports->address(delivery.peer), envelope.source_port,
                                         envelope.target_port, delivery.bytes, now);
    if (!is_taken || is_confirmed(envelope)) [[unlikely]]
      tell(delivery, is_taken, now);
    return;
  }
  const auto match = receives_.match(envelope.target_port, delivery.size, true);
  if (!match) return tell(delivery, false, now);
  ++context_.counters.messages_received;
  place(delivery, match.slot, receives_.take_room(match, delivery.size), now);
}

/// Reports to the sender whether its message was taken, if it requested that, or if the message was refused.
void Messages::tell(const link::Delivery& delivery, bool is_taken, base::Instant now) {
  const wire::Envelope& envelope = delivery.envelope;
  const bool is_asked = is_confirmed(envelope);
  if (is_taken && !is_asked) return;
  const Status status = is_taken ? Status::ok : refusal(envelope.target_port, delivery.size, is_asked);
  if (status == Status::ok && !is_taken) return;
  wire::Envelope told{
      .operation = wire::Operation::told, .status = std::to_underlying(status), .cookie = envelope.cookie};
  if (told.cookie == 0) {
    // A short message of this host has no name: the line of its ring names it.
    if (status == Status::ok || !delivery.is_short() || !shm::Transport::has(delivery.peer)) return;
    told.a = context_.shm_transport()->line_behind(delivery.peer);
  }
  answers_.answer(delivery.peer, told, 0, now);
}

/// Returns why no buffer takes a message; ok if the sender is not told.
Status Messages::refusal(std::uint32_t target_port, std::uint64_t size, bool is_asked) {
  if (context_.ports.find_number(target_port) == kNone) return Status::refused;
  return is_asked || size > kLong ? Status::no_buffer : Status::ok;
}

/// Handles the receiver's report on one of our messages. A refused message is sent no further. A receiver may only
/// report `ok`, `no_buffer` or `refused`; any other status counts as `refused`.
void Messages::deliver_told(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& told = delivery.envelope;
  const bool is_known =
      told.status == std::to_underlying(Status::ok) || told.status == std::to_underlying(Status::no_buffer);
  const auto status = is_known ? static_cast<Status>(told.status) : Status::refused;
  if (told.cookie == 0 && shm::Transport::has(delivery.peer) && status != Status::ok)
    return context_.shm_transport()->end_line(delivery.peer, told.a, status);
  if (slot_of(told.cookie) >= link::kShortSlots) {
    const OperationHandle name{slot_of(told.cookie), generation_of(told.cookie)};
    if (status == Status::ok || !context_.transports->mark_refused(delivery.peer, name, status))
      ++context_.counters.dropped_late_answer;
    return;
  }
  Operation* const send = context_.operations.find(told.cookie);
  if (send == nullptr || send->kind != OperationKind::send || send->peer != delivery.peer) {
    ++context_.counters.dropped_late_answer;
    return;
  }
  send->is_answer_pending = false;
  if (status == Status::ok) return settle(slot_of(told.cookie), now);
  send->status = status;
  forget(slot_of(told.cookie), now);
}

void Messages::deliver_answer(const link::Delivery& delivery, base::Instant now) {
  const std::uint32_t slot = transfers_.deliver_answer(delivery, has_place_for(delivery));
  if (slot == kNone || context_.operations[slot].is_busy) return place(delivery, slot, 0, now);
  settle(slot, now);  // the answer was too big, or no placement was free
}

/// Returns whether a placement is free, if the message needs one.
bool Messages::has_place_for(const link::Delivery& delivery) {
  return delivery.reassembly == link::Delivery::kWhole || context_.placements.has_room();
}

// Placing ------------------------------------------------------------------------------------------------------------

// Places the first bytes of a message in the memory of an operation: all bytes, or the first chunk.
void Messages::place(const link::Delivery& delivery, std::uint32_t slot, std::uint64_t offset, base::Instant now) {
  if (slot == kNone) return;
  const bool is_whole = delivery.reassembly == link::Delivery::kWhole;
  if (is_whole && context_.operations[slot].kind != OperationKind::receive) {
    context_.operations[slot].permit(offset, delivery.size).write(0, delivery.bytes);
    return delivery.is_good() ? end_placed(delivery, slot, now) : end_torn(slot, Status::refused, now);
  }
  const RemotePort source{context_.transports->address(delivery.peer), delivery.envelope.source_port};
  const std::uint32_t placement = receives_.begin_placement(slot, offset, delivery.size, source);
  const transport::Cookie target{.place = placement, .number = context_.placements.generation(placement)};
  if (!is_whole) context_.transports->set_target(delivery.peer, delivery.reassembly, target.word());
  place_chunk(delivery, placement, now);
}

void Messages::place_chunk(const link::Delivery& delivery, std::uint32_t slot, base::Instant now) {
  if (delivery.target == 0 && !delivery.is_first) return;  // the first chunk was refused or dropped
  const Placement& placement = context_.placements[slot];
  const Operation* const operation = context_.operations.find(placement.operation);
  // The operation ended half-way, so its memory belongs to the application again.
  if (operation == nullptr) return drop_chunk(delivery, slot, now);
  operation->permit(placement.offset, placement.size).write(delivery.offset, delivery.bytes);
  if (!delivery.is_last) return;
  if (operation->kind == OperationKind::receive) {
    receives_.end_placement(slot, delivery.is_good() ? Status::ok : Status::refused, now);
    return tell(delivery, true, now);
  }
  const std::uint32_t target = slot_of(placement.operation);
  context_.placements.release(slot);
  end_placed(delivery, target, now);
}

/// Drops a chunk of a message whose operation has ended.
void Messages::drop_chunk(const link::Delivery& delivery, std::uint32_t placement, base::Instant now) {
  if (!delivery.is_last) return;
  ++context_.counters.dropped_late_answer;
  context_.placements.release(placement);
  const wire::Envelope& whole = delivery.envelope;
  if (whole.operation == wire::Operation::put) answers_.tell_done(delivery.peer, whole.cookie, Status::stale, now);
}

/// Ends a transfer whose bytes are all in place.
void Messages::end_placed(const link::Delivery& delivery, std::uint32_t slot, base::Instant now) {
  if (transfers_.end_placed(slot, delivery, now)) settle(slot, now);
}

// Ends a message that has arrived in part: its sender is lost, or took it back.
void Messages::end_arrival(std::uint64_t target, Status status, base::Instant now) {
  const auto cookie = transport::Cookie::of(target);
  const std::uint32_t place = cookie.place;
  const Placement* const placement = context_.placements.find(place, cookie.number);
  if (placement == nullptr) return;
  const std::uint64_t name = placement->operation;
  const Operation* const operation = context_.operations.find(name);
  if (operation != nullptr && operation->kind == OperationKind::receive)
    return receives_.end_placement(place, status, now);
  context_.placements.release(place);
  if (operation != nullptr) end_torn(slot_of(name), status, now);
}

/// Ends an operation whose incoming data will not arrive in full.
void Messages::end_torn(std::uint32_t slot, Status status, base::Instant now) {
  Operation& operation = context_.operations[slot];
  if (operation.kind == OperationKind::expose_writable) return exposures_.complete(slot, status, 0, now);
  operation.is_answer_pending = false;
  if (operation.status == Status::ok) operation.status = status;
  settle(slot, now);
}

// Completion ---------------------------------------------------------------------------------------------------------

void Messages::end_outcome(const link::Outcome& outcome, base::Instant now) {
  const auto cookie = transport::Cookie::of(outcome.cookie);
  Operation* const operation = context_.operations.find(cookie);
  if (operation == nullptr) return;  // it has ended, for example by cancel()
  const std::uint32_t slot = cookie.place;
  operation->is_link_pending = false;
  const bool is_send = operation->kind == OperationKind::send;
  if ((is_send && !operation->is_answer_pending) || operation->kind == OperationKind::expose_readable) {
    if (is_send) awaited_.is_over(slot);
    return context_.operations.complete(slot, outcome.status, operation->length, now);
  }
  if (is_send) operation->length_done = operation->length;
  if (outcome.status != Status::ok) {
    if (operation->status == Status::ok) operation->status = outcome.status;
    operation->is_answer_pending = false;
  }
  settle(slot, now);
}

void Messages::end_short(const link::Outcome& end, base::Instant now) {
  Port& port = context_.ports[end.owner];
  --port.operations;
  context_.ports.put_event(port, end.owner, [&](void* place) {
    new (place) Completion{.cookie = end.cookie,
                           .length = end.status == Status::ok ? end.length : 0,
                           .offset = 0,
                           .time_ns = now.time_since_epoch().count(),
                           .source = {},
                           .status = end.status,
                           .is_final = true};
  });
}

// Completes an operation when both its outcome and its answer have arrived.
void Messages::settle(std::uint32_t slot, base::Instant now) {
  if (slot == kNone || !awaited_.is_over(slot)) return;
  const Operation& operation = context_.operations[slot];
  if (operation.kind == OperationKind::loan && operation.status == Status::not_available)
    return loans_.send_instead(slot, now);
  context_.operations.complete(slot, operation.status, operation.length_done, now);
}

void Messages::end_peer(link::PeerHandle peer, Status status, base::Instant now) {
  for (std::uint32_t slot; (slot = awaited_.take_lost(peer, status)) != kNone;) settle(slot, now);
  answers_.drop(peer, status, now);
}

void Messages::end_abandoned(Status status, base::Instant now) {
  while (const auto gone = context_.shm_transport()->connections().take_departed())
    await_others(exposures_.end_abandoned(*gone, status, now), now);
}

/// Limits the wait for an exposure that cannot end yet; kNone if there is none.
void Messages::await_others(std::uint32_t exposure, base::Instant now) {
  if (exposure != kNone) patience_.grant(context_.operations.name_of(exposure), now);
}

void Messages::progress(base::Instant now) {
  if (exposures_.is_withdrawing()) [[unlikely]]
    exposures_.retry_withdrawals(now);
  answers_.retry(now);
  if (transfers_.is_repeating()) [[unlikely]]
    transfers_.repeat(now, [&](std::uint32_t failed) { settle(failed, now); });
  if (now >= awaited_.next_deadline()) [[unlikely]]
    awaited_.ask(now);
}

// Removes operations that have ended by themselves early; otherwise each would wake the engine once, at its time.
void Messages::end_impatient(Patience& patience, base::Instant now) {
  while (!patience.is_empty()) {
    const Patience::Granted first = patience.first();
    const bool is_open = context_.operations.find(first.name) != nullptr;
    if (is_open && first.until > now) return;
    patience.take_first();
    if (!is_open) continue;
    ++context_.counters.ended_by_force;
    end_by_force(slot_of(first.name), now);
  }
}

void Messages::end_by_force(std::uint32_t slot, base::Instant now) {
  const Operation& operation = context_.operations[slot];
  switch (operation.kind) {
    case OperationKind::receive:
      return receives_.abandon(slot, now);
    case OperationKind::expose_readable:
      if (operation.is_link_pending) return take_readable(slot, now);
      [[fallthrough]];
    case OperationKind::expose_writable:
      // Another peer came too late, or is malicious.
      if (operation.is_used_up) return exposures_.complete(slot, operation.status, operation.length_done, now);
      // The rest of a put over a transport is dropped, and its initiator is told. A mapped peer that claimed the
      // exposure has stopped half-way, or an entry of the table is false.
      return exposures_.complete(slot, Status::canceled, 0, now);
    default:
      return forget(slot, now);
  }
}

/// Ends a readable exposure whose bytes are being sent: takes back the answer to the get, and tells the initiator.
void Messages::take_readable(std::uint32_t slot, base::Instant now) {
  Operation& operation = context_.operations[slot];
  context_.transports->cancel(operation.peer, operation.reference, context_.operations.cookie_of(slot).word());
  operation.is_link_pending = false;
  answers_.tell_done(operation.peer, operation.asker, Status::stale, now);
  exposures_.complete(slot, Status::canceled, 0, now);
}

void Messages::check(std::vector<std::uint32_t>& of_port) {
  context_.operations.for_each([&](std::uint32_t slot, const Operation& operation) {
    if (operation.port >= of_port.size()) of_port.resize(operation.port + 1);
    ++of_port[operation.port];
    ENSURE(operation.fill <= operation.length, "operation {}: {} of {} bytes are given away", slot, operation.fill,
           operation.length);
    ENSURE(operation.kind != OperationKind::receive || operation.is_busy || operation.is_in_chain,
           "operation {}: a receive that takes nothing and does not end", slot);
    if (operation.kind == OperationKind::expose_readable || operation.kind == OperationKind::expose_writable)
      exposures_.check(slot);
    ENSURE(operation.first_placement == kNone ||
               context_.placements[operation.first_placement].operation == context_.operations.name_of(slot),
           "operation {}: its first message is another's", slot);
  });
}

}  // namespace fairlead::engine
