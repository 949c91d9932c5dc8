#include "embedded/embedded_active.hpp"

#include <algorithm>
#include <array>

#include "engine/handover.hpp"

namespace fairlead::embedded {

Status EmbeddedActive::activate(engine::PortHandle port) {
  const Driver::Locked lock(driver_);
  return driver_.engine().activate(port);
}

Status EmbeddedActive::activate(engine::PortHandle port, const engine::ActivePort::Bounds& bounds) {
  const Driver::Locked lock(driver_);
  const engine::ActivePort::Bounds& own = driver_.engine().active().port_bounds();
  const engine::ActivePort::Bounds lower{.arrivals_max = std::min(bounds.arrivals_max, own.arrivals_max),
                                         .memory_max = std::min(bounds.memory_max, own.memory_max),
                                         .packed_max = std::min(bounds.packed_max, own.packed_max)};
  return driver_.engine().activate(port, &lower);
}

void EmbeddedActive::leave(engine::PortHandle port, Status why) {
  const Driver::Locked lock(driver_);
  driver_.engine().active().leave(port, why);
}

void EmbeddedActive::refuse(engine::PortHandle port, const engine::UnansweredRequest& request, Status status) {
  driver_.submit([&](base::Instant now) {
    driver_.engine().active().refuse(port, request, status, now);
    return Status::ok;
  });
}

bool EmbeddedActive::give_segment(engine::PortHandle port, const engine::Segment& segment) {
  const Driver::Locked lock(driver_);
  return engine::Handover(driver_.engine()).active().give_segment(port, segment);
}

bool EmbeddedActive::give_arrival(engine::PortHandle port, const engine::ArrivalState& arrival) {
  const Driver::Locked lock(driver_);
  return engine::Handover(driver_.engine()).active().give_arrival(port, arrival);
}

void EmbeddedActive::cancel_all(engine::PortHandle port) {
  driver_.submit([&](base::Instant now) {
    driver_.engine().cancel_all(port, now);
    return Status::ok;
  });
}

Status EmbeddedActive::set_access(engine::PortHandle port, const engine::AccessRule& rule) {
  const Driver::Locked lock(driver_);
  active_of(port).rule = rule;
  return Status::ok;
}

Status EmbeddedActive::set_segment(engine::PortHandle port, const engine::Segment& segment) {
  const Driver::Locked lock(driver_);
  active_of(port).segment = segment;
  return Status::ok;
}

void EmbeddedActive::forget_request(engine::PortHandle port, std::uint64_t name) {
  driver_.submit([&](base::Instant) {
    driver_.engine().active().forget_request(port, name);
    return Status::ok;
  });
}

Status EmbeddedActive::send_active(engine::PortHandle port, const engine::ActiveMessage& message,
                                   engine::Conversation& conversation) {
  return driver_.submit_local(
      [&] { return driver_.is_local(message.to); },
      [&](base::Instant now) { return driver_.engine().send_active(port, message, now, &conversation); });
}

bool EmbeddedActive::next_loss(std::uint64_t& seen, engine::PeerLoss& loss) {
  const Driver::Locked lock(driver_);
  return driver_.engine().active().losses().next(seen, loss);
}

void EmbeddedActive::ask_peer(const base::SocketAddress& peer) {
  driver_.submit([&](base::Instant now) {
    driver_.engine().active().ask_peer(peer, now);
    return Status::ok;
  });
}

bool EmbeddedActive::wait_any(std::span<const engine::PortHandle> handles, base::Instant deadline) {
  ENSURE(handles.size() <= kWaitPortsMax, "waits for {} ports", handles.size());
  std::array<engine::Port*, kWaitPortsMax> ports;
  std::ranges::transform(handles, ports.begin(), [this](engine::PortHandle handle) { return &driver_.port(handle); });
  return driver_.wait(std::span(ports).first(handles.size()), deadline);
}

}  // namespace fairlead::embedded
