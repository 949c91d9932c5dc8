#pragma once
// The six queues of a machine: submits buffers to the Core, tracks those it holds, and keeps the statistics.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <boost/intrusive/list.hpp>

#include <fairlead/net/transfer_machine.hpp>

#include "engine/core.hpp"
#include "net/buffer_state.hpp"
#include "net/clock.hpp"
#include "net/deadline_queue.hpp"
#include "net/domain_state.hpp"
#include "net/machine_port.hpp"
#include "net/receive_provision.hpp"

namespace fairlead::net {

/// The caller holds the machine's lock. The machine is started, except where stated.
class OperationQueues {
 public:
  /// `owner` is stored in each queued buffer. `domain` is null for a machine that never starts.
  OperationQueues(Machine& owner, const DomainState* domain, MachinePort& port, const ReceiveProvision& provision)
      : owner_(&owner), domain_(domain), port_(port), provision_(provision) {}

  Status add(BufferState& buffer, const MessageReceive& operation);
  Status add(BufferState& buffer, const MessageSend& operation);
  Status add(BufferState& buffer, const PassiveReceive& operation) {
    return expose(buffer, QueueKind::passive_bulk_receive, kWholeBuffer, operation.deadline);
  }
  Status add(BufferState& buffer, const PassiveSend& operation) {
    return expose(buffer, QueueKind::passive_bulk_send, operation.length, operation.deadline);
  }
  Status add(BufferState& buffer, const ActiveReceive& operation) {
    return transfer(buffer, QueueKind::active_bulk_receive, operation.descriptor, kWholeBuffer, operation.deadline);
  }
  Status add(BufferState& buffer, const ActiveSend& operation) {
    return transfer(buffer, QueueKind::active_bulk_send, operation.descriptor, operation.length, operation.deadline);
  }
  TransferMachine::Added add(std::span<Buffer* const> buffers, const MessageSend& operation);

  /// Asks the Core to end an operation. The first requester decides how a `canceled` status is reported.
  void end_early(BufferState& buffer, BufferState::Ender ender);
  void end_all() {
    for (BufferState& buffer : queued_) end_early(buffer, BufferState::Ender::owner);
  }
  /// Asks the Core to end all operations whose deadline has passed.
  void expire();
  /// Resources to return to the Core after a batch of events.
  struct Released {
    std::uint32_t events = 0;
    std::uint32_t spares = 0;  // buffers from a pool, including their events
  };
  /// Updates the books for an event of the Core. Corrects its status where this class knows the cause better.
  void settle(engine::Completion& completion, Released& released);

  /// The following may be called in any state.
  bool are_empty() const { return queued_.empty(); }
  bool has_deadlines() const { return !deadlines_.is_empty(); }
  Instant earliest_deadline() { return deadlines_.earliest(); }
  Statistics statistics(bool reset) { return reset ? std::exchange(statistics_, Statistics()) : statistics_; }

 private:
  using Queue = boost::intrusive::list<
      BufferState, boost::intrusive::member_hook<BufferState, BufferState::QueueHook, &BufferState::queue_hook>>;

  struct Plan;
  Status admit(const BufferState& buffer, QueueKind kind) const;
  template <typename Submit>
  Status enqueue(BufferState& buffer, const Plan& plan, Submit&& submit);
  void keep(BufferState& buffer, const Plan& plan, const engine::OperationHandle& operation, Instant added);
  Status add_some(std::span<Buffer* const> buffers, const MessageSend& operation, Instant added, std::size_t& count);
  static constexpr std::size_t kAddedAtOnce = 32;
  Status expose(BufferState& buffer, QueueKind kind, std::uint64_t length, Instant deadline);
  Status transfer(BufferState& buffer, QueueKind kind, std::span<const std::byte> descriptor, std::uint64_t length,
                  Instant deadline);
  void adopt(BufferState& buffer, const engine::Completion& completion);
  void note(const BufferState& buffer, const engine::Completion& completion);

  Machine* const owner_;
  const DomainState* const domain_;
  MachinePort& port_;
  const ReceiveProvision& provision_;
  Queue queued_;
  DeadlineQueue deadlines_;
  Statistics statistics_;
};

inline bool is_receive(QueueKind kind) {
  return kind == QueueKind::message_receive || kind == QueueKind::passive_bulk_receive ||
         kind == QueueKind::active_bulk_receive;
}

// Inline, because the delivery loop calls it for every event.

inline void OperationQueues::settle(engine::Completion& completion, Released& released) {
  BufferState& buffer = BufferState::of(completion.cookie);
  if (buffer.machine.load(std::memory_order_relaxed) != owner_) [[unlikely]]
    adopt(buffer, completion);
  // `timed_out` is reported only if no other result came first.
  if (completion.status == Status::canceled && buffer.ender == BufferState::Ender::deadline)
    completion.status = Status::timed_out;
  note(buffer, completion);
  if (!completion.is_final) return;
  queued_.erase(queued_.iterator_to(buffer));
  deadlines_.remove(buffer);
  released.events += buffer.events;
  if (buffer.events == 0) ++released.spares;
}

inline void OperationQueues::note(const BufferState& buffer, const engine::Completion& completion) {
  QueueStatistics& queue = statistics_.queues[std::to_underlying(buffer.kind)];
  if (completion.is_final) queue.time_in_queue += to_public(completion.time_ns) - buffer.added;
  if (completion.status != Status::ok) {
    ++queue.failures;
    return;
  }
  ++queue.successes;
  const std::uint64_t bytes = is_receive(buffer.kind) ? completion.length : buffer.length;
  queue.bytes_total += bytes;
  queue.bytes_max = std::max(queue.bytes_max, bytes);
}

}  // namespace fairlead::net
