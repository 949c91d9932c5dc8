#include "net/operation_queues.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/ensure.hpp"
#include "net/clock.hpp"
#include "net/last_refusal.hpp"
#include "net/passive_descriptor.hpp"

namespace fairlead::net {
namespace {

constexpr const char* kNotFree =
    "the buffer is queued, closed, in its pool or being destroyed: wait for its final event";
constexpr const char* kNoEndPoint =
    "the end point is empty, gone, or of another transfer machine: make it with create_end_point() of this one";
constexpr const char* kBadDescriptor =
    "the descriptor is malformed or damaged (inspect() names the fault): pass on the bytes of Buffer::descriptor() "
    "unchanged";
constexpr const char* kTooLate = "the deadline has passed";
constexpr const char* kBadLength = "length is 0, or more than the buffer has: 1..Buffer::size(), or kWholeBuffer";

// Returns the number of bytes to send, or nullopt if the wish is out of range.
std::optional<std::uint64_t> length_in(const BufferState& buffer, std::uint64_t wanted) {
  if (wanted == kWholeBuffer) return buffer.size;
  if (wanted == 0 || wanted > buffer.size) return std::nullopt;
  return wanted;
}

}  // namespace

/// The parameters of an operation, apart from its call to the Core.
struct OperationQueues::Plan {
  QueueKind kind;
  std::uint64_t length = 0;
  Instant deadline = kNever;
  std::uint32_t events = 1;
};

// Checks everything that does not depend on the particular operation.
Status OperationQueues::admit(const BufferState& buffer, QueueKind kind) const {
  if (buffer.domain.get() != domain_) {
    return refuse_add(Status::invalid, "the buffer is of another domain: make it in that of the transfer machine");
  }
  if (buffer.phase.load(std::memory_order_relaxed) != BufferState::Phase::free || buffer.is_going) {
    return refuse_add(Status::bad_state, kNotFree);
  }
  if (buffer.callbacks[std::to_underlying(kind)]) return Status::ok;
  return refuse_add(Status::invalid, "the buffer has no callback for this queue: Buffer::set_callback() before add()");
}

// Queues the buffer if `submit` hands it to the Core. On failure nothing has changed.
template <typename Submit>
Status OperationQueues::enqueue(BufferState& buffer, const Plan& plan, Submit&& submit) {
  // Without a deadline no time is read here: keep() uses the engine's clock reading, if there is one.
  const Instant added = plan.deadline == kNever ? Instant() : domain_->time();
  if (plan.deadline != kNever && plan.deadline <= added) return refuse_add(Status::too_late, kTooLate);
  auto expected = BufferState::Phase::free;
  if (!buffer.phase.compare_exchange_strong(expected, BufferState::Phase::queued, std::memory_order_acq_rel)) {
    return refuse_add(Status::bad_state, kNotFree);
  }
  engine::OperationHandle operation;
  Status status = port_.core->reserve_events(port_.handle, plan.events);
  if (status == Status::ok) {
    status = submit(operation, added);
    if (status != Status::ok) port_.core->release_events(port_.handle, plan.events);
  }
  if (status != Status::ok) {
    buffer.phase.store(BufferState::Phase::free, std::memory_order_release);
    return refuse_add(status, status == Status::invalid ? kBadDescriptor : nullptr);
  }

  keep(buffer, plan, operation, added);
  return Status::ok;
}

// Records that the Core holds the buffer.
void OperationQueues::keep(BufferState& buffer, const Plan& plan, const engine::OperationHandle& operation,
                           Instant added) {
  buffer.machine.store(owner_, std::memory_order_release);
  buffer.kind = plan.kind;
  buffer.ender = BufferState::Ender::nobody;
  buffer.events = plan.events;
  buffer.length = plan.length;
  buffer.added = operation.at != base::Instant{} ? to_public(operation.at)
                 : added != Instant()            ? added
                                                 : domain_->time();
  buffer.deadline = plan.deadline;
  buffer.operation = operation;
  queued_.push_back(buffer);
  ++statistics_.queues[std::to_underlying(plan.kind)].adds;
  if (plan.deadline != kNever) deadlines_.add(buffer);
}

Status OperationQueues::add(BufferState& buffer, const MessageReceive& operation) {
  if (const Status status = admit(buffer, QueueKind::message_receive); status != Status::ok) return status;
  const auto size_min = length_in(buffer, operation.size_min);
  if (!size_min) {
    return refuse_add(Status::invalid,
                      "size_min is 0, or more than the buffer has: 1..Buffer::size(), or kWholeBuffer");
  }
  if (operation.messages_max == 0 || operation.messages_max > kMessagesInBufferMax) {
    return refuse_add(Status::invalid, "messages_max is not in 1..kMessagesInBufferMax (4096)");
  }
  const Plan plan{.kind = QueueKind::message_receive, .deadline = operation.deadline, .events = operation.messages_max};
  return enqueue(buffer, plan, [&](engine::OperationHandle& handle, Instant) {
    const engine::Receive receive{.memory = buffer.memory,
                                  .size_min = *size_min,
                                  .messages_max = operation.messages_max,
                                  .takes_loans = operation.takes_loans,
                                  .cookie = buffer.cookie()};
    return port_.core->post_receive(port_.handle, receive, handle);
  });
}

Status OperationQueues::add(BufferState& buffer, const MessageSend& operation) {
  if (const Status status = admit(buffer, QueueKind::message_send); status != Status::ok) return status;
  const auto length = length_in(buffer, operation.length);
  if (!length) return refuse_add(Status::invalid, kBadLength);
  const EndPointState* const to = port_.end_points.find(operation.to);
  if (to == nullptr) return refuse_add(Status::invalid, kNoEndPoint);
  const Plan plan{.kind = QueueKind::message_send, .length = *length, .deadline = operation.deadline};
  return enqueue(buffer, plan, [&](engine::OperationHandle& handle, Instant added) {
    const engine::Send send{.to = to->remote,
                            .part = {buffer.memory, *length, buffer.cookie()},
                            .now = to_engine(added),
                            .is_loan = operation.is_loan,
                            .is_confirmed = operation.is_confirmed};
    return port_.core->send(port_.handle, send, handle);
  });
}

TransferMachine::Added OperationQueues::add(std::span<Buffer* const> buffers, const MessageSend& operation) {
  TransferMachine::Added all;
  if (operation.is_loan || operation.is_confirmed) {  // such sends are submitted one by one
    for (; all.count < buffers.size() && all.status == Status::ok; all.count += all.status == Status::ok ? 1 : 0)
      all.status = add(BufferState::of(*buffers[all.count]), operation);
    return all;
  }
  if (port_.end_points.find(operation.to) == nullptr) return {0, refuse_add(Status::invalid, kNoEndPoint)};
  const Instant added = operation.deadline == kNever ? Instant() : domain_->time();
  if (operation.deadline <= added) return {0, refuse_add(Status::too_late, kTooLate)};
  while (all.count < buffers.size() && all.status == Status::ok) {
    const std::size_t some = std::min(buffers.size() - all.count, kAddedAtOnce);
    all.status = add_some(buffers.subspan(all.count, some), operation, added, all.count);
  }
  return all;
}

// Claims the buffers, has the Core send them, and releases those that the Core did not accept.
Status OperationQueues::add_some(std::span<Buffer* const> faces, const MessageSend& operation, Instant added,
                                 std::size_t& count) {
  std::array<link::SendPart, kAddedAtOnce> parts;
  std::array<engine::OperationHandle, kAddedAtOnce> operations;
  std::size_t taken = 0;
  Status status = Status::ok;
  // Claiming a buffer is an atomic operation, which waits for earlier loads. So prefetch all buffers first.
  for (Buffer* face : faces) BufferState::of(*face).fetch();
  for (; taken < faces.size(); ++taken) {
    BufferState& buffer = BufferState::of(*faces[taken]);
    if (status = admit(buffer, QueueKind::message_send); status != Status::ok) break;
    const auto length = length_in(buffer, operation.length);
    if (!length) {
      status = refuse_add(Status::invalid, kBadLength);
      break;
    }
    auto expected = BufferState::Phase::free;
    if (!buffer.phase.compare_exchange_strong(expected, BufferState::Phase::queued, std::memory_order_acq_rel)) {
      status = refuse_add(Status::bad_state, kNotFree);
      break;
    }
    parts[taken] = {buffer.memory, *length, buffer.cookie()};
  }
  // If not all events can be reserved, reserve as many as possible and send that many.
  std::size_t events = taken, sent = 0;
  while (events > 0 && port_.core->reserve_events(port_.handle, static_cast<std::uint32_t>(events)) != Status::ok)
    events /= 2;
  if (events < taken) status = refuse_add(Status::no_memory);
  if (events > 0) {
    Status refused = Status::ok;
    sent = port_.core->send_all(port_.handle, port_.end_points.find(operation.to)->remote,
                                std::span(parts).first(events), operations, refused);
    if (sent < events) port_.core->release_events(port_.handle, static_cast<std::uint32_t>(events - sent));
    if (refused != Status::ok) status = refuse_add(refused);
  }
  for (std::size_t i = 0; i < taken; ++i) {
    BufferState& buffer = BufferState::of(*faces[i]);
    const Plan plan{.kind = QueueKind::message_send, .length = parts[i].length, .deadline = operation.deadline};
    if (i < sent) {
      keep(buffer, plan, operations[i], added);
    } else {
      buffer.phase.store(BufferState::Phase::free, std::memory_order_release);
    }
  }
  count += sent;
  return status;
}

Status OperationQueues::expose(BufferState& buffer, QueueKind kind, std::uint64_t wanted, Instant deadline) {
  if (const Status status = admit(buffer, kind); status != Status::ok) return status;
  const auto length = length_in(buffer, wanted);
  if (!length) return refuse_add(Status::invalid, kBadLength);
  std::uint64_t key = 0;
  const Plan plan{.kind = kind, .length = *length, .deadline = deadline};
  const Status status = enqueue(buffer, plan, [&](engine::OperationHandle& handle, Instant) {
    const engine::Exposure exposure{.memory = buffer.memory,
                                    .length = *length,
                                    .is_writable = kind == QueueKind::passive_bulk_receive,
                                    .cookie = buffer.cookie()};
    return port_.core->expose(port_.handle, exposure, handle, key);
  });
  if (status == Status::ok) {
    buffer.descriptor = encode_descriptor({.owner = EndPointState::of(port_.own)->remote,
                                           .kind = kind,
                                           .epoch = port_.core->epoch(),
                                           .key = key,
                                           .size = *length});
  }
  return status;
}

Status OperationQueues::transfer(BufferState& buffer, QueueKind kind, std::span<const std::byte> bytes,
                                 std::uint64_t wanted, Instant deadline) {
  if (const Status status = admit(buffer, kind); status != Status::ok) return status;
  const auto length = length_in(buffer, wanted);
  if (!length) return refuse_add(Status::invalid, kBadLength);
  const Plan plan{.kind = kind, .length = *length, .deadline = deadline};
  return enqueue(buffer, plan, [&](engine::OperationHandle& handle, Instant) {
    const auto passive = decode_descriptor(bytes, kind, *length);
    if (!passive) return passive.error();
    const base::SocketAddress& own = EndPointState::of(port_.own)->remote.engine;
    engine::Transfer transfer{.target = passive->owner,
                              .target_epoch = passive->epoch,
                              .key = passive->key,
                              .memory = buffer.memory,
                              .length = kind == QueueKind::active_bulk_receive ? passive->size : *length,
                              .cookie = buffer.cookie()};
    if (!is_same_network(own, transfer.target.engine)) return Status::unreachable;
    transfer.target.engine.scope = own.scope;
    return kind == QueueKind::active_bulk_receive ? port_.core->get(port_.handle, transfer, handle)
                                                  : port_.core->put(port_.handle, transfer, handle);
  });
}

// Adopts a buffer that the engine took from the pool, at its first event.
void OperationQueues::adopt(BufferState& buffer, const engine::Completion& completion) {
  ENSURE(buffer.pooled != nullptr && provision_.is_attached() && buffer.pooled->pool == provision_.pool() &&
             buffer.phase.load(std::memory_order_acquire) == BufferState::Phase::pooled,
         "an event for a buffer that is not queued here");
  buffer.phase.store(BufferState::Phase::queued, std::memory_order_release);
  keep(buffer, {.kind = QueueKind::message_receive, .events = 0}, buffer.pooled->spare.operation,
       to_public(completion.time_ns));
}

void OperationQueues::end_early(BufferState& buffer, BufferState::Ender ender) {
  if (buffer.ender != BufferState::Ender::nobody) return;
  buffer.ender = ender;
  if (ender == BufferState::Ender::owner) ++statistics_.queues[std::to_underlying(buffer.kind)].deletes;
  port_.core->cancel(port_.handle, buffer.operation);
}

void OperationQueues::expire() {
  if (deadlines_.is_empty()) return;
  const Instant time = domain_->time();
  while (BufferState* buffer = deadlines_.take_due(time)) end_early(*buffer, BufferState::Ender::deadline);
}

}  // namespace fairlead::net
