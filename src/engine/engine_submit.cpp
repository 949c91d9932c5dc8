// What applications ask of the engine.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/scatter.hpp"
#include "engine/engine.hpp"

namespace fairlead::engine {

Status Engine::post_receive(PortHandle handle, const Receive& receive, OperationHandle& handle_out) {
  Port* port = ports_.find(handle);
  if (port == nullptr) return Status::stale;
  const std::uint64_t size = base::scatter_size(receive.memory);
  if (receive.size_min == 0 || receive.size_min > size || receive.messages_max == 0) return Status::invalid;
  const std::uint32_t slot = make_operation(OperationKind::receive, handle, receive.cookie);
  if (slot == kNone) return Status::no_memory;
  Operation& operation = operations_[slot];
  operation.memory = receive.memory;
  operation.length = size;
  operation.size_min = receive.size_min;
  operation.messages_left = receive.messages_max;
  operation.takes_loans = receive.takes_loans;
  port->posted.append(operations_, slot);
  handle_out = handle_of(slot);
  return Status::ok;
}

Status Engine::send(PortHandle handle, const Send& send, OperationHandle& handle_out, base::Instant now) {
  Port* port = ports_.find(handle);
  if (port == nullptr) return Status::stale;
  if (send.part.memory.size() > link::kPiecesMax || send.part.length > base::scatter_size(send.part.memory))
    return Status::invalid;
  now_ = now;
  const bool is_local = is_here(send.to.engine);
  if (!is_local && !transports_) return Status::unreachable;
  if (Status status = Status::ok; send.is_loan && !is_local && lend(handle, send, handle_out, status)) return status;

  const std::uint32_t slot = make_operation(OperationKind::send, handle, send.part.cookie);
  if (slot == kNone) return Status::no_memory;
  Operation& operation = operations_[slot];
  operation.memory = send.part.memory;
  operation.length = send.part.length;
  operation.other = send.to;
  handle_out = {slot, operations_.generation(slot), now};
  if (is_local) {
    send_local(slot, send.to.port);
    ++counters_.messages_sent;
    return Status::ok;
  }

  link::PeerHandle peer;
  if (const Status status = transports_->resolve(send.to.engine, now, peer); status != Status::ok) {
    release_operation(slot);
    return status;
  }
  operation.peer = peer;
  operation.is_link_pending = true;
  const Status status = transports_->submit(
      peer,
      {.envelope = {.operation = wire::Operation::message, .source_port = port->number, .target_port = send.to.port},
       .pieces = send.part.memory,
       .size = send.part.length,
       .cookie = name_of(slot)},
      now);
  if (status != Status::ok) {
    release_operation(slot);
    return status;
  }
  ++counters_.messages_sent;
  transports_->flight().submitted(peer, send.part.length, now);
  transports_->send_eagerly(peer, now);
  return Status::ok;
}

Status Engine::expose(PortHandle handle, const Exposure& exposure, OperationHandle& handle_out, std::uint64_t& key) {
  if (ports_.find(handle) == nullptr) return Status::stale;
  if (exposure.memory.size() > link::kPiecesMax || exposure.length > base::scatter_size(exposure.memory))
    return Status::invalid;
  const std::uint32_t slot = make_operation(
      exposure.is_writable ? OperationKind::expose_writable : OperationKind::expose_readable, handle, exposure.cookie);
  if (slot == kNone) return Status::no_memory;
  Operation& operation = operations_[slot];
  operation.memory = exposure.memory;
  operation.length = exposure.length;
  operation.key = key = make_key(slot);
  handle_out = handle_of(slot);
  show_exposure(slot);
  return Status::ok;
}

Status Engine::transfer(PortHandle handle, OperationKind kind, const Transfer& transfer, OperationHandle& handle_out,
                        base::Instant now) {
  Port* port = ports_.find(handle);
  if (port == nullptr) return Status::stale;
  if (transfer.memory.size() > link::kPiecesMax || transfer.length > base::scatter_size(transfer.memory))
    return Status::invalid;
  now_ = now;
  const bool is_local = is_here(transfer.target.engine);
  if (!is_local && !transports_) return Status::unreachable;
  if (is_local && transfer.target_epoch != epoch_) return Status::stale;
  if (!is_local && carry_out(handle, kind == OperationKind::put, transfer)) {
    handle_out = {.at = now};
    return Status::ok;
  }

  const std::uint32_t slot = make_operation(kind, handle, transfer.cookie);
  if (slot == kNone) return Status::no_memory;
  Operation& operation = operations_[slot];
  operation.memory = transfer.memory;
  operation.length = transfer.length;
  operation.other = transfer.target;
  handle_out = handle_of(slot);
  if (is_local) {
    transfer_local(slot, transfer.key, transfer.target.port);
    return Status::ok;
  }

  link::PeerHandle peer;
  Status status = transports_->resolve(transfer.target.engine, now, peer);
  if (status == Status::ok) {
    operation.peer = peer;
    operation.is_link_pending = true;
    operation.is_answer_pending = true;
    const bool is_put = kind == OperationKind::put;
    status = transports_->submit(peer,
                                 {.envelope = {.operation = is_put ? wire::Operation::put : wire::Operation::get,
                                               .source_port = port->number,
                                               .target_port = transfer.target.port,
                                               .key = transfer.key ^ transfer.target_epoch,
                                               .cookie = name_of(slot),
                                               .a = transfer.length},
                                  .pieces = is_put ? transfer.memory : std::span<const iovec>{},
                                  .size = is_put ? transfer.length : 0,
                                  .cookie = name_of(slot)},
                                 now);
  }
  if (status != Status::ok) {
    release_operation(slot);
    return status;
  }
  waiting_[peer.slot].append(operations_, slot);
  if (ask_at_ == base::kNever && !shm::Transport::has(peer)) ask_at_ = now + ask_after();
  transports_->flight().submitted(peer, kind == OperationKind::put ? transfer.length : 0, now);
  transports_->send_eagerly(peer, now);
  return Status::ok;
}

Status Engine::send_active(PortHandle handle, const ActiveMessage& message, base::Instant now,
                           Conversation* conversation) {
  Port* const found = ports_.find(handle);
  if (found == nullptr || !found->active) return Status::stale;
  Port& port = *found;
  if (const Status status = active_.begin(port, message); status != Status::ok) return status;
  now_ = now;
  const bool is_referenced = message.length > options_.get(Option::embedded_max);
  if (is_here(message.to.engine)) {
    active_.send_here(port, message, now);
    if (is_referenced)
      ports_.produce(handle.slot, {.cookie = message.cookie, .length = message.length, .source = message.to});
    return Status::ok;
  }
  if (!transports_) return Status::unreachable;
  link::PeerHandle peer;
  if (const Status status = transports_->resolve(message.to.engine, now, peer); status != Status::ok) return status;
  if (conversation != nullptr) *conversation = active_.conversation(peer);
  if (!is_referenced) [[likely]]
    return active_.send(peer, port, message, 0, now);
  const std::uint32_t slot = make_operation(OperationKind::send, handle, message.cookie);
  if (slot == kNone) return Status::no_memory;
  Operation& operation = operations_[slot];
  operation.memory = message.memory;
  operation.length = message.length;
  operation.other = message.to;
  operation.peer = peer;
  operation.is_link_pending = true;
  const Status status = active_.send(peer, port, message, name_of(slot), now);
  if (status != Status::ok) release_operation(slot);
  return status;
}

bool Engine::cancel(PortHandle handle, OperationHandle name, base::Instant now) {
  if (name.slot >= kNearSlots && name.slot != kNone) return cancel_near(name);
  Port* port = ports_.find(handle);
  Operation* operation = operations_.find(name.slot, name.generation);
  if (port == nullptr || operation == nullptr || operation->port != handle.slot) return false;
  now_ = now;
  const bool is_first = !std::exchange(operation->is_cancel_wanted, true);
  switch (operation->kind) {
    case OperationKind::receive:
      port->posted.remove(operations_, name.slot);
      operation->is_busy = true;
      finish_placements(name.slot);
      break;
    case OperationKind::expose_readable:
    case OperationKind::expose_writable:
      // Once a transfer has begun its real result comes.
      if (operation->is_busy) break;
      if (withdraw_exposure(name.slot)) {
        complete(name.slot, Status::canceled, 0);
      } else {
        withdrawing_.push_back(pack_name(name.slot, name.generation));
      }
      break;
    case OperationKind::send:
    case OperationKind::put:
      // The outcome brings the end: `canceled` if nothing of it had been sent.
      transports_->cancel(operation->peer, pack_name(name.slot, name.generation));
      break;
    case OperationKind::loan:
      // As soon as the peer has it. Its reader may go on reading: what is written there then, it may see.
      operation->is_answer_pending = false;
      operation->status = Status::canceled;
      settle(name.slot);
      break;
    case OperationKind::get:
      // The answer will find nobody and is thrown away; only the request has to leave the link.
      operation->is_answer_pending = false;
      if (operation->status == Status::ok) operation->status = Status::canceled;
      transports_->cancel(operation->peer, pack_name(name.slot, name.generation));
      settle(name.slot);
      break;
  }
  if (!transports_) return true;
  react(now);
  const std::uint64_t pending = pack_name(name.slot, name.generation);
  if (is_first && find_operation(pending) != nullptr) grant_patience(pending, now);
  return true;
}

}  // namespace fairlead::engine
