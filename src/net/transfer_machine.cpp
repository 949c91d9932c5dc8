#include <fairlead/net/transfer_machine.hpp>

#include <utility>

#include "net/machine.hpp"

namespace fairlead::net {

TransferMachine::TransferMachine(Domain& domain, MachineCallback on_event) {
  machine_ = std::make_shared<Machine>(*this, domain.state_, std::move(on_event));
  machine_->enroll();
}

TransferMachine::~TransferMachine() {
  machine_->let_go();
}

Result<> TransferMachine::confine(std::span<const unsigned> cpus) {
  return machine_->confine(cpus);
}
Result<> TransferMachine::deliver_synchronously() {
  return machine_->deliver_synchronously();
}

Result<> TransferMachine::start(std::string_view address) {
  return machine_->start(address);
}
Result<EndPoint> TransferMachine::start_and_wait(std::string_view address) {
  return machine_->start_and_wait(address);
}
Result<> TransferMachine::stop(StopMode mode) {
  return machine_->stop(mode);
}
Result<> TransferMachine::stop_and_wait(StopMode mode) {
  return machine_->stop_and_wait(mode);
}
Result<> TransferMachine::close() {
  return machine_->close();
}
MachineState TransferMachine::state() const noexcept {
  return machine_->state();
}
Error TransferMachine::failure() const {
  return machine_->failure();
}

EndPoint TransferMachine::end_point() const {
  return machine_->end_point();
}
Result<EndPoint> TransferMachine::create_end_point(std::string_view address) {
  return machine_->create_end_point(address);
}
std::string TransferMachine::describe(const EndPoint& end_point) const {
  return machine_->describe(end_point);
}
std::string TransferMachine::describe_flight(const EndPoint& end_point) const {
  return machine_->describe_flight(end_point);
}

Status TransferMachine::add(Buffer& buffer, const MessageReceive& operation) {
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const MessageSend& operation) {
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const PassiveReceive& operation) {
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const PassiveSend& operation) {
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const ActiveReceive& operation) {
  return machine_->add(buffer, operation);
}
Status TransferMachine::add(Buffer& buffer, const ActiveSend& operation) {
  return machine_->add(buffer, operation);
}
TransferMachine::Added TransferMachine::add(std::span<Buffer* const> buffers, const MessageSend& operation) {
  return machine_->add(buffers, operation);
}
bool TransferMachine::cancel(Buffer& buffer) {
  return machine_->cancel(buffer);
}
std::uint64_t TransferMachine::message_size_max() const noexcept {
  return machine_->message_size_max();
}

std::expected<std::size_t, Status> TransferMachine::deliver_all(std::size_t budget) {
  return machine_->deliver_all(budget);
}
bool TransferMachine::pending() {
  return machine_->pending();
}
std::expected<bool, Status> TransferMachine::wait(Instant deadline) {
  return machine_->wait(deadline);
}
Status TransferMachine::notify(std::function<void()> signal) {
  return machine_->notify(std::move(signal));
}

Statistics TransferMachine::statistics(bool reset) {
  return machine_->statistics(reset);
}
std::uint64_t TransferMachine::messages_dropped() const {
  return machine_->messages_dropped();
}
std::vector<Counter> TransferMachine::engine_counters() const {
  return machine_->engine_counters();
}

}  // namespace fairlead::net
