#include "sim/sim_core.hpp"

#include "base/ensure.hpp"

namespace fairlead::sim {

void SimCore::close_port(engine::PortHandle port) {
  constexpr int kStepsMax = 10'000'000;
  engine_->cancel_all(port, now());
  for (int step = 0; engine_->ports().find(port)->operations != 0; ++step) {
    ENSURE(step < kStepsMax, "a port does not come to its end");
    if (!progress()) world_.pass_time();
  }
  engine_->free_port(port);
}

Status SimCore::reserve_events(engine::PortHandle handle, std::uint32_t count) {
  engine::Port& port = *engine_->ports().find(handle);
  const Status status = port.events->reserve(std::uint64_t{port.events_reserved} + count);
  if (status == Status::ok) port.events_reserved += count;
  return status;
}

void SimCore::release_events(engine::PortHandle handle, std::uint32_t count) {
  engine_->ports().find(handle)->events_reserved -= count;
}

Status SimCore::send(engine::PortHandle port, const engine::Send& send, engine::OperationHandle& operation) {
  if (send.part.length > kMessageSizeMax) return Status::message_size;
  return engine_->messages().send(port, send, operation, now());
}

std::size_t SimCore::send_all(engine::PortHandle port, const engine::RemotePort& to,
                              std::span<const link::SendPart> parts, std::span<engine::OperationHandle> operations,
                              Status& status) {
  status = Status::ok;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    status = send(port, {.to = to, .part = {parts[i].memory, parts[i].length, parts[i].cookie}}, operations[i]);
    if (status != Status::ok) return i;
  }
  return parts.size();
}

bool SimCore::progress() {
  const bool any = engine_->progress(now());
  engine_->ports().notify_touched();
  return any;
}

std::size_t SimCore::next_events(engine::PortHandle port, std::span<engine::Completion> to) {
  return engine_->ports().find(port)->events->consume(to);
}

bool SimCore::wait(engine::PortHandle port, base::Instant deadline) {
  while (!has_event(port) && now() < deadline) world_.pass_time();
  return has_event(port);
}

}  // namespace fairlead::sim
