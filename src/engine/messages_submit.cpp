// Submissions to the messages' client, and cancelling.

#include <utility>

#include "base/scatter.hpp"
#include "engine/messages.hpp"
#include "transport/short_sends.hpp"

namespace fairlead::engine {

Status Messages::send(PortHandle handle, const Send& send, OperationHandle& handle_out, base::Instant now) {
  if (context_.ports.find(handle) == nullptr) return Status::stale;
  if (send.part.memory.size() > link::kPiecesMax || send.part.length > base::scatter_size(send.part.memory))
    return Status::invalid;
  const bool is_loopback = send.to.engine == context_.address;
  if (!is_loopback && context_.transports == nullptr) return Status::unreachable;
  if (Status status = Status::ok;
      send.is_loan && !send.is_confirmed && !is_loopback && loans_.lend(handle, send, handle_out, status, now))
    return status;
  link::PeerHandle peer;
  if (!is_loopback) {
    const Status status = context_.transports->resolve(send.to.engine, now, peer);
    if (status != Status::ok) return status;
    if (!send.is_confirmed && send_short(handle, peer, send.to.port, {&send.part, 1}, {&handle_out, 1}, now) == 1)
      return Status::ok;
  }
  if (is_loopback && local_.takes_turns(send.part.length) && !local_.reserve()) return Status::no_memory;
  const std::uint32_t slot = context_.operations.make(OperationKind::send, handle, send.part.cookie);
  if (slot == kNone) return Status::no_memory;
  Operation& operation = context_.operations[slot];
  operation.memory = send.part.memory;
  operation.length = send.part.length;
  operation.other = send.to;
  operation.peer = peer;
  handle_out = context_.operations.handle_of(slot);
  handle_out.at = now;
  Status status = Status::ok;
  if (is_loopback) {
    send_loopback(slot, send, now);
  } else if (status = send_by_reference(slot, send, now); status != Status::ok) {
    context_.operations.release(slot);
    return status;
  }
  ++context_.counters.messages_sent;
  return Status::ok;
}

Status Messages::send_by_reference(std::uint32_t slot, const Send& send, base::Instant now) {
  Operation& operation = context_.operations[slot];
  operation.is_link_pending = true;
  // Short messages inside a host carry no name: a report identifies them by their line in the ring.
  const bool is_named = send.is_confirmed || !shm::Transport::has(operation.peer) || send.part.length > kLong;
  const Status status = context_.transports->submit(
      operation.peer,
      {.envelope = {.operation = wire::Operation::message,
                    .flags = send.is_confirmed ? wire::MessageFlags::kConfirm : std::uint16_t{0},
                    .source_port = context_.ports[operation.port].number,
                    .target_port = send.to.port,
                    .cookie = is_named ? context_.operations.name_of(slot) : 0},
       .pieces = send.part.memory,
       .size = send.part.length,
       .cookie = context_.operations.cookie_of(slot).word()},
      now, &operation.reference);
  if (status != Status::ok) return status;
  if (send.is_confirmed) {
    operation.is_answer_pending = true;
    awaited_.add(slot, now);
  }
  context_.transports->flight().submitted(operation.peer, 1, send.part.length, now);
  context_.transports->send_eagerly(operation.peer, now);
  return Status::ok;
}

/// Both ends are in this engine: copies once, in several turns if it is long, and produces both events.
void Messages::send_loopback(std::uint32_t slot, const Send& send, base::Instant now) {
  const Operation& sender = context_.operations[slot];
  Status status = Status::ok;
  const bool takes_turns = local_.takes_turns(sender.length);
  if (const auto match = receives_.match(send.to.port, sender.length, takes_turns)) {
    const std::uint64_t offset = receives_.take_room(match, sender.length);
    if (takes_turns) {
      const RemotePort source{context_.address, context_.ports[sender.port].number};
      return local_.begin_message(slot, receives_.begin_placement(match.slot, offset, sender.length, source));
    }
    base::scatter_copy(match.operation->memory, offset, sender.memory, sender.length);
    receives_.complete(match, offset, sender.length, context_.address, context_.ports[sender.port].number, now);
  } else {
    status = refusal(send.to.port, sender.length, send.is_confirmed);
  }
  context_.operations.complete(slot, status, sender.length, now);
}

std::size_t Messages::send_short(PortHandle handle, link::PeerHandle peer, std::uint32_t target_port,
                                 std::span<const link::SendPart> parts, std::span<OperationHandle> names,
                                 base::Instant now) {
  Port* const port = context_.ports.find(handle);
  if (port == nullptr) [[unlikely]]
    return 0;
  const std::size_t sent = context_.transports->send_short(
      peer, {.source_port = port->number, .target_port = target_port, .owner = handle.slot, .parts = parts}, now,
      names);
  port->operations += static_cast<std::uint32_t>(sent);
  context_.counters.messages_sent += sent;
  return sent;
}

std::uint64_t Messages::track_send(PortHandle port, link::PeerHandle peer, const RemotePort& to, std::uint64_t length,
                                   std::uint64_t cookie) {
  const std::uint32_t slot = context_.operations.make(OperationKind::send, port, cookie);
  if (slot == kNone) return 0;
  Operation& operation = context_.operations[slot];
  operation.length = length;
  operation.other = to;
  operation.peer = peer;
  operation.is_link_pending = true;
  return context_.operations.name_of(slot);
}

bool Messages::cancel(PortHandle port, OperationHandle name, base::Instant now) {
  if (name.slot >= link::kShortSlots && name.slot != kNone) return cancel_short(port, name, now);
  Operation* const operation = context_.operations.find(port, name);
  if (operation == nullptr) return false;
  operation->is_cancel_wanted = true;
  if (local_.has(name.slot)) {
    local_.cancel(name.slot, now);
  } else {
    cancel_kind(*operation, name, now);
  }
  return true;
}

/// Cancels a short message. It may still arrive if it was sent.
bool Messages::cancel_short(PortHandle port, OperationHandle name, base::Instant now) {
  if (context_.transports == nullptr || context_.ports.find(port) == nullptr) return false;
  const auto end = context_.transports->end_early(port.slot, name);
  if (end) end_short(*end, now);
  return end.has_value();
}

void Messages::cancel_short_of(PortHandle port, base::Instant now) {
  if (context_.transports == nullptr || context_.ports.find(port) == nullptr) return;
  std::uint32_t first = 0;
  while (const auto end = context_.transports->end_any_early(port.slot, first)) end_short(*end, now);
}

// An operation that we initiated ends at once, whatever the peer does: the transport forgets our memory, and a late
// answer is dropped. A transfer that a peer has begun gets some time to end.
void Messages::cancel_kind(Operation& operation, OperationHandle name, base::Instant now) {
  switch (operation.kind) {
    case OperationKind::receive:
      return receives_.cancel(name.slot, now);
    case OperationKind::expose_readable:
    case OperationKind::expose_writable:
    case OperationKind::blank:
      return exposures_.cancel(name.slot, now);
    case OperationKind::send:
    case OperationKind::put:
    case OperationKind::get:
    case OperationKind::loan:
      return forget(name.slot, now);
  }
}

/// Ends an operation at once. The reader of a loan may still read the memory, and then sees what is written there.
void Messages::forget(std::uint32_t slot, base::Instant now) {
  Operation& operation = context_.operations[slot];
  context_.transports->cancel(operation.peer, operation.reference, context_.operations.cookie_of(slot).word());
  operation.is_link_pending = operation.is_answer_pending = false;
  if (operation.status == Status::ok) operation.status = Status::canceled;
  if (operation.kind == OperationKind::loan) operation.status = Status::canceled;
  settle(slot, now);
}

void Messages::grant_patience(PortHandle port, OperationHandle name, base::Instant now) {
  Operation* const operation = context_.operations.find(port, name);
  if (operation == nullptr || std::exchange(operation->has_patience, true)) return;
  // A peer of this host that accesses our memory cannot be stopped, so it gets the give-up time.
  (operation->is_published ? patience_ : grace_).grant(pack_name(name.slot, name.generation), now);
}

}  // namespace fairlead::engine
