#include <fairlead/net/transfer_machine.hpp>

#include <algorithm>
#include <utility>

#include "base/process_mark.hpp"
#include "net/last_refusal.hpp"
#include "net/machine.hpp"
#include "net/pool_state.hpp"
#include "net/refused.hpp"

// The error for a call in the child of a fork() on the parent's machine. It does not touch the machine's lock.

namespace fairlead::net {
namespace {

std::unexpected<Error> before_fork() {
  return refused(Status::bad_state, kBeforeFork);
}

/// operation_of(i) is the operation of buffers[i].
template <typename OperationOf>
TransferMachine::Added add_each(Machine& machine, std::span<Buffer* const> buffers, OperationOf&& operation_of) {
  if (machine.is_inherited()) return {0, refuse_add(Status::bad_state, kBeforeFork)};
  return machine.add_many([&](OperationQueues& queues, Instant& deadline) {
    TransferMachine::Added all;
    for (; all.count < buffers.size(); ++all.count) {
      const auto& operation = operation_of(all.count);
      all.status = queues.add(BufferState::of(*buffers[all.count]), operation);
      if (all.status != Status::ok) break;
      deadline = std::min(deadline, operation.deadline);
    }
    return all;
  });
}

template <typename Operation>
TransferMachine::Added add_same(Machine& machine, std::span<Buffer* const> buffers, const Operation& operation) {
  return add_each(machine, buffers, [&](std::size_t) -> const Operation& { return operation; });
}

template <typename Operation>
TransferMachine::Added add_pairs(Machine& machine, std::span<Buffer* const> buffers,
                                 std::span<const Operation> operations) {
  if (operations.size() != buffers.size())
    return {0, refuse_add(Status::invalid, "not as many operations as buffers: one for each, in the same order")};
  return add_each(machine, buffers, [&](std::size_t i) -> const Operation& { return operations[i]; });
}

}  // namespace

TransferMachine::TransferMachine(Domain& domain, MachineCallback on_event) {
  machine_ = std::make_shared<Machine>(*this, domain.state_, std::move(on_event));
  machine_->enroll();
}

TransferMachine::~TransferMachine() {
  if (machine_->is_inherited()) {
    base::keep_for_ever(std::move(machine_));
    return;
  }
  machine_->let_go();
}

Result<> TransferMachine::confine(std::span<const unsigned> cpus) {
  if (machine_->is_inherited()) return before_fork();
  return machine_->confine(cpus);
}
Result<> TransferMachine::deliver_synchronously() {
  if (machine_->is_inherited()) return before_fork();
  return machine_->deliver_synchronously();
}

Result<> TransferMachine::attach(const BufferPool& pool, Provision provision) {
  if (machine_->is_inherited()) return before_fork();
  auto attached = machine_->attach(pool.state_, std::move(provision));
  if (attached) pool.state_->refill_machines();  // each machine's share is smaller now
  return attached;
}
Result<> TransferMachine::report_statistics(Duration every) {
  if (machine_->is_inherited()) return before_fork();
  return machine_->report_statistics(every);
}
Status TransferMachine::set_receive_length(std::uint32_t length) {
  if (machine_->is_inherited()) return Status::bad_state;
  return machine_->wish([&](ReceiveProvision& own) { return own.set_length(length); });
}
Status TransferMachine::set_receive_colour(std::uint32_t colour) {
  if (machine_->is_inherited()) return Status::bad_state;
  return machine_->wish([&](ReceiveProvision& own) { return own.set_colour(colour); });
}
std::uint32_t TransferMachine::receive_deficit() const {
  if (machine_->is_inherited()) return 0;
  return machine_->receive_deficit();
}

Result<> TransferMachine::start(std::string_view address) {
  if (machine_->is_inherited()) return before_fork();
  return machine_->start(address);
}
Result<EndPoint> TransferMachine::start_and_wait(std::string_view address) {
  if (machine_->is_inherited()) return before_fork();
  return machine_->start_and_wait(address);
}
Result<> TransferMachine::stop(StopMode mode) {
  if (machine_->is_inherited()) return before_fork();
  return machine_->stop(mode);
}
Result<> TransferMachine::stop_and_wait(StopMode mode) {
  if (machine_->is_inherited()) return before_fork();
  return machine_->stop_and_wait(mode);
}
Result<> TransferMachine::close() {
  if (machine_->is_inherited()) return before_fork();
  return machine_->close();
}
MachineState TransferMachine::state() const noexcept {
  if (machine_->is_inherited()) return MachineState::undefined;
  return machine_->state();
}
Error TransferMachine::failure() const {
  if (machine_->is_inherited()) return before_fork().error();
  return machine_->failure();
}

EndPoint TransferMachine::end_point() const {
  if (machine_->is_inherited()) return {};
  return machine_->ask([](const MachinePort& port) { return port.own; });
}
Result<EndPoint> TransferMachine::create_end_point(std::string_view address) {
  if (machine_->is_inherited()) return before_fork();
  return machine_->create_end_point(address);
}
std::string TransferMachine::describe(const EndPoint& end_point) const {
  if (machine_->is_inherited()) return {};
  return machine_->ask([&](const MachinePort& port) { return port.describe(end_point); });
}
std::string TransferMachine::describe(const EndPoint& end_point, Status status) const {
  if (machine_->is_inherited()) return {};
  return machine_->ask([&](const MachinePort& port) { return port.describe(end_point, status); });
}
PeerFacts TransferMachine::peer_facts(const EndPoint& end_point, Status status) const {
  if (machine_->is_inherited()) return {};
  return machine_->ask([&](const MachinePort& port) { return port.peer_facts(end_point, status); });
}
std::string TransferMachine::describe_flight(const EndPoint& end_point) const {
  if (machine_->is_inherited()) return {};
  return machine_->ask([&](const MachinePort& port) { return port.describe_flight(end_point); });
}

Status TransferMachine::add(Buffer& buffer, const MessageReceive& operation) {
  if (machine_->is_inherited()) return refuse_add(Status::bad_state, kBeforeFork);
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const MessageSend& operation) {
  if (machine_->is_inherited()) return refuse_add(Status::bad_state, kBeforeFork);
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const PassiveReceive& operation) {
  if (machine_->is_inherited()) return refuse_add(Status::bad_state, kBeforeFork);
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const PassiveSend& operation) {
  if (machine_->is_inherited()) return refuse_add(Status::bad_state, kBeforeFork);
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const ActiveReceive& operation) {
  if (machine_->is_inherited()) return refuse_add(Status::bad_state, kBeforeFork);
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const ActiveSend& operation) {
  if (machine_->is_inherited()) return refuse_add(Status::bad_state, kBeforeFork);
  return machine_->add(buffer, operation);
}
TransferMachine::Added TransferMachine::add(std::span<Buffer* const> buffers, const MessageReceive& operation) {
  return add_same(*machine_, buffers, operation);
}
TransferMachine::Added TransferMachine::add(std::span<Buffer* const> buffers, const MessageSend& operation) {
  if (machine_->is_inherited()) return {0, refuse_add(Status::bad_state, kBeforeFork)};
  return machine_->add_many([&](OperationQueues& queues, Instant& deadline) {
    const Added added = queues.add(buffers, operation);
    if (added.count > 0) deadline = operation.deadline;
    return added;
  });
}
TransferMachine::Added TransferMachine::add(std::span<Buffer* const> buffers, const PassiveReceive& operation) {
  return add_same(*machine_, buffers, operation);
}
TransferMachine::Added TransferMachine::add(std::span<Buffer* const> buffers, const PassiveSend& operation) {
  return add_same(*machine_, buffers, operation);
}
TransferMachine::Added TransferMachine::add(std::span<Buffer* const> buffers,
                                            std::span<const ActiveReceive> operations) {
  return add_pairs(*machine_, buffers, operations);
}
TransferMachine::Added TransferMachine::add(std::span<Buffer* const> buffers, std::span<const ActiveSend> operations) {
  return add_pairs(*machine_, buffers, operations);
}
Error TransferMachine::explain_last() {
  return last_refusal();
}
bool TransferMachine::cancel(Buffer& buffer) {
  if (machine_->is_inherited()) return false;
  return machine_->cancel(buffer);
}
std::uint64_t TransferMachine::message_size_max() const noexcept {
  if (machine_->is_inherited()) return 0;
  return machine_->ask([](const MachinePort& port) { return port.message_size_max(); });
}

std::expected<std::size_t, Status> TransferMachine::deliver_all(std::size_t budget) {
  if (machine_->is_inherited()) return std::unexpected(Status::bad_state);
  return machine_->calls().deliver_all(budget);
}
bool TransferMachine::pending() {
  if (machine_->is_inherited()) return false;
  return machine_->calls().pending();
}
std::expected<bool, Status> TransferMachine::wait(Instant deadline) {
  if (machine_->is_inherited()) return std::unexpected(Status::bad_state);
  return machine_->calls().wait(deadline);
}
std::expected<bool, Status> TransferMachine::arm() {
  if (machine_->is_inherited()) return std::unexpected(Status::bad_state);
  return machine_->calls().arm();
}
int TransferMachine::descriptor() const {
  if (machine_->is_inherited()) return -1;
  return machine_->calls().descriptor();
}
Status TransferMachine::notify(std::function<void()> signal) {
  if (machine_->is_inherited()) return Status::bad_state;
  return machine_->calls().notify(std::move(signal));
}

Statistics TransferMachine::statistics(bool reset) {
  if (machine_->is_inherited()) return {};
  return machine_->statistics(reset);
}
std::uint64_t TransferMachine::messages_dropped() const {
  if (machine_->is_inherited()) return 0;
  return machine_->ask([](const MachinePort& port) { return port.dropped(); });
}
std::vector<Counter> TransferMachine::engine_counters() const {
  if (machine_->is_inherited()) return {};
  const auto core = machine_->ask([](const MachinePort& port) { return port.core; });
  std::vector<Counter> counters;
  if (!core) return counters;
  for (auto& fact : core->facts().counters) counters.push_back({std::move(fact.name), fact.value});
  return counters;
}

}  // namespace fairlead::net
