#include "engine/transfers.hpp"

#include <utility>

#include "base/scatter.hpp"

namespace fairlead::engine {

// Requests to peers --------------------------------------------------------------------------------------------------

Status Transfers::submit(PortHandle handle, OperationKind kind, const Transfer& transfer, OperationHandle& handle_out,
                         base::Instant now) {
  if (context_.ports.find(handle) == nullptr) return Status::stale;
  if (transfer.memory.size() > link::kPiecesMax || transfer.length > base::scatter_size(transfer.memory))
    return Status::invalid;
  const bool is_loopback = transfer.target.engine == context_.address;
  if (!is_loopback && context_.transports == nullptr) return Status::unreachable;
  if (is_loopback && transfer.target_epoch != context_.epoch) return Status::stale;
  if (!is_loopback && remote_.carry_out(handle, kind == OperationKind::put, transfer, now)) {
    handle_out = {.at = now};
    return Status::ok;
  }
  if (is_loopback && local_.takes_turns(transfer.length) && !local_.reserve()) return Status::no_memory;
  const std::uint32_t slot = make(handle, kind, transfer);
  if (slot == kNone) return Status::no_memory;
  handle_out = context_.operations.handle_of(slot);
  const Status status = is_loopback ? start_here(slot, now) : ask(slot, transfer, now);
  if (status != Status::ok) context_.operations.release(slot);
  return status;
}

std::uint32_t Transfers::make(PortHandle port, OperationKind kind, const Transfer& transfer) {
  const std::uint32_t slot = context_.operations.make(kind, port, transfer.cookie);
  if (slot == kNone) return kNone;
  Operation& operation = context_.operations[slot];
  operation.memory = transfer.memory;
  operation.length = transfer.length;
  operation.other = transfer.target;
  operation.asked_key = transfer.key ^ transfer.target_epoch;
  return slot;
}

/// Returns `no_memory` if it can neither be done nor wait.
Status Transfers::start_here(std::uint32_t slot, base::Instant now) {
  if (carry_out_here(slot, now) != Status::again) return Status::ok;
  context_.operations[slot].is_answer_pending = true;
  return await_exposure(slot, now) ? Status::ok : Status::no_memory;
}

/// Both ends are in this engine: copies once, in several turns if it is long, and produces both events. Returns `again`
/// if the exposure is not there yet; other results are events.
Status Transfers::carry_out_here(std::uint32_t slot, base::Instant now) {
  const Operation& active = context_.operations[slot];
  const bool is_put = active.kind == OperationKind::put;
  std::uint32_t exposure = kNone;
  const auto kind = is_put ? OperationKind::expose_writable : OperationKind::expose_readable;
  const Status status =
      exposures_.take(active.asked_key ^ context_.epoch, active.other.port, kind, active.length, exposure);
  if (status == Status::again) return status;
  if (status != Status::ok) {
    context_.operations.complete(slot, status, 0, now);
    return Status::ok;
  }
  Operation& passive = context_.operations[exposure];
  const std::uint64_t length = is_put ? active.length : passive.length;
  passive.other = {context_.address, context_.ports[active.port].number};
  if (local_.takes_turns(length)) {
    local_.begin_transfer(slot, exposure, length);
    return Status::ok;
  }
  base::scatter_copy(is_put ? passive.memory : active.memory, 0, is_put ? active.memory : passive.memory, length);
  exposures_.complete(exposure, Status::ok, length, now);
  context_.operations.complete(slot, Status::ok, length, now);
  return Status::ok;
}

Status Transfers::ask(std::uint32_t slot, const Transfer& transfer, base::Instant now) {
  Operation& operation = context_.operations[slot];
  const Status resolved = context_.transports->resolve(transfer.target.engine, now, operation.peer);
  if (resolved != Status::ok) return resolved;
  operation.is_answer_pending = true;
  const Status status = request(slot, now);
  if (status != Status::ok) return status;
  awaited_.add(slot, now);
  context_.transports->send_eagerly(operation.peer, now);
  return Status::ok;
}

Status Transfers::request(std::uint32_t slot, base::Instant now) {
  Operation& operation = context_.operations[slot];
  const bool is_put = operation.kind == OperationKind::put;
  const std::uint64_t sent = is_put ? operation.length : 0;
  operation.is_link_pending = true;
  const Status status =
      context_.transports->submit(operation.peer,
                                  {.envelope = {.operation = is_put ? wire::Operation::put : wire::Operation::get,
                                                .source_port = context_.ports[operation.port].number,
                                                .target_port = operation.other.port,
                                                .key = operation.asked_key,
                                                .cookie = context_.operations.name_of(slot),
                                                .a = operation.length},
                                   .pieces = is_put ? operation.memory : std::span<const iovec>{},
                                   .size = sent,
                                   .cookie = context_.operations.cookie_of(slot).word()},
                                  now, &operation.reference);
  if (status == Status::ok) {
    context_.transports->flight().submitted(operation.peer, 1, sent, now);
  } else {
    operation.is_link_pending = false;
  }
  return status;
}

// Requests that came early -------------------------------------------------------------------------------------------

/// Returns false if there is no memory.
bool Transfers::await_exposure(std::uint32_t slot, base::Instant now) {
  Operation& operation = context_.operations[slot];
  return operation.is_to_repeat = repeated_.add(context_.operations.name_of(slot), operation.repeats, now);
}

/// Returns false if the caller has to end the operation; its status then tells why.
bool Transfers::repeat_one(std::uint32_t slot, base::Instant now) {
  Operation& operation = context_.operations[slot];
  operation.is_to_repeat = false;
  ++operation.repeats;
  const Status status = ask_again(slot, now);
  if (status == Status::ok) return true;
  operation.is_answer_pending = false;
  operation.status = status;
  return false;
}

/// Returns why the transfer has failed; ok if it has not yet.
Status Transfers::ask_again(std::uint32_t slot, base::Instant now) {
  Operation& operation = context_.operations[slot];
  // The bytes of the first request may need longer than the give-up time, which begins when the link has sent them.
  if (operation.repeat_until == base::Instant{} && !operation.is_link_pending)
    operation.repeat_until = now + context_.give_up_after();
  if (operation.repeat_until != base::Instant{} && now >= operation.repeat_until) return Status::stale;
  Status status = Status::again;
  if (is_here(operation)) {
    if (local_.takes_turns(operation.length) && !local_.reserve()) return Status::no_memory;
    status = carry_out_here(slot, now);
  } else if (!operation.is_link_pending) {
    status = request(slot, now);
  }
  if (status != Status::again) return status;
  return await_exposure(slot, now) ? Status::ok : Status::no_memory;
}

std::uint32_t Transfers::deliver_answer(const link::Delivery& delivery, bool has_place) {
  const std::uint64_t name = delivery.envelope.cookie;
  Operation* const get = context_.operations.find(name);
  if (get == nullptr || get->kind != OperationKind::get || !get->is_answer_pending || get->is_busy ||
      get->is_to_repeat || get->peer != delivery.peer) {
    ++context_.counters.dropped_late_answer;
    return kNone;
  }
  const bool fits = delivery.size <= get->length;
  get->is_busy = fits && has_place;
  if (!get->is_busy) {
    context_.counters.refused_too_big += fits ? 0 : 1;
    get->is_answer_pending = false;
    get->status = fits ? Status::no_memory : Status::too_big;
  }
  return slot_of(name);
}

std::uint32_t Transfers::deliver_done(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& done = delivery.envelope;
  if (done.cookie == 0) return kNone;  // a keep-alive message, or one that opens a session
  Operation* const operation = context_.operations.find(done.cookie);
  if (operation == nullptr || operation->peer != delivery.peer || !operation->is_answer_pending ||
      operation->is_to_repeat || (operation->kind != OperationKind::put && operation->kind != OperationKind::get)) {
    ++context_.counters.dropped_late_answer;
    return kNone;
  }
  const bool is_early = done.status == std::to_underlying(Status::again);
  if (is_early && await_exposure(slot_of(done.cookie), now)) return kNone;
  operation->is_answer_pending = false;
  if (is_early) {
    operation->status = Status::no_memory;
  } else if (done.status != 0) {
    operation->status =
        done.status <= std::to_underlying(Status::system) ? static_cast<Status>(done.status) : Status::system;
  } else if (operation->kind == OperationKind::put) {
    operation->length_done = operation->length;
  } else {
    operation->status = Status::system;  // only an answer completes a get successfully
  }
  return slot_of(done.cookie);
}

// Requests of peers --------------------------------------------------------------------------------------------------

std::uint32_t Transfers::take_exposure(const link::Delivery& delivery, OperationKind kind, std::uint64_t length,
                                       base::Instant now) {
  const wire::Envelope& asked = delivery.envelope;
  std::uint32_t slot = kNone;
  const Status status = exposures_.take(asked.key ^ context_.epoch, asked.target_port, kind, length, slot);
  if (status == Status::ok) {
    context_.operations[slot].other = {context_.transports->address(delivery.peer), asked.source_port};
    return slot;
  }
  if (status == Status::stale)
    context_.transports->offences().note_wrong_secret(delivery.peer, transport::Secret::exposure, now);
  // Later chunks of a refused put have no target and are discarded.
  answers_.tell_done(delivery.peer, asked.cookie, status, now);
  return kNone;
}

std::uint32_t Transfers::deliver_put(const link::Delivery& delivery, base::Instant now) {
  const std::uint32_t slot = take_exposure(delivery, OperationKind::expose_writable, delivery.size, now);
  if (slot != kNone) ++context_.counters.puts_received;
  return slot;
}

void Transfers::deliver_get(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& get = delivery.envelope;
  const std::uint32_t slot = take_exposure(delivery, OperationKind::expose_readable, get.a, now);
  if (slot == kNone) return;
  ++context_.counters.gets_received;
  Operation& exposure = context_.operations[slot];
  exposure.peer = delivery.peer;
  exposure.asker = get.cookie;
  exposure.is_link_pending = true;
  answers_.answer(delivery.peer, {.operation = wire::Operation::answer, .cookie = get.cookie},
                  context_.operations.name_of(slot), now);
}

bool Transfers::end_placed(std::uint32_t slot, const link::Delivery& delivery, base::Instant now) {
  Operation& operation = context_.operations[slot];
  if (operation.kind == OperationKind::expose_writable) {
    answers_.tell_done(delivery.peer, delivery.envelope.cookie, Status::ok, now);
    exposures_.complete(slot, Status::ok, delivery.size, now);
    return false;
  }
  operation.is_answer_pending = false;
  operation.length_done = delivery.size;
  return true;
}

}  // namespace fairlead::engine
