// Submits an application's operations to its engine.

#include <algorithm>

#include "sim/addresses.hpp"
#include "sim/application.hpp"
#include "sim/pattern.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kSubmitted = 3, kCanceled = 4;
constexpr std::uint32_t kReceiveSizesInBuffer = 4;  // a receive has room for this many of the largest messages
constexpr std::uint64_t kReceiveSizeMost = 4u << 20;
constexpr double kLongerMemory = 0.2;

std::uint64_t largest_message_to(const Scenario& scenario, std::uint32_t host) {
  std::uint64_t largest = 1;
  for (const FlowPlan& flow : scenario.flows) {
    if (flow.to == host && (flow.kind == FlowPlan::Kind::message || flow.kind == FlowPlan::Kind::mixed))
      largest = std::max(largest, flow.size_max);
  }
  return largest;
}

}  // namespace

Application::Application(const Life& life, const HostPlan& plan, engine::Engine& engine, WatchedPath& path,
                         Shared shared)
    : life_(life),
      plan_(plan),
      engine_(engine),
      path_(path),
      shared_(shared),
      random_(life.seed),
      regions_(random_.next()),
      message_size_max_(largest_message_to(shared.scenario, life.host)),
      pending_to_(shared.scenario.hosts.size()) {}

void Application::begin(base::Instant now) {
  for (std::uint32_t number = 0; number < shared_.scenario.ports; ++number) {
    const auto opened = engine_.ports().open(number);
    if (!opened)
      return shared_.findings.add("host {} cannot open port {}: {}", life_.host, number, opened.error().message);
    ports_.push_back({.handle = *opened});
  }
  post_receives(now);
}

bool Application::reserve(std::uint32_t port, std::uint32_t events) {
  Port& own = ports_[port];
  if (engine_.ports().find(own.handle)->events->reserve(std::uint64_t{own.reserved} + events) != Status::ok)
    return false;
  own.reserved += events;
  return true;
}

void Application::reserve_again() {
  for (Port& own : ports_) {
    const bool has_room = engine_.ports().find(own.handle)->events->reserve(own.reserved) == Status::ok;
    SIM_CHECK(shared_.findings, has_room, "host {}: no room for {} events any more", life_.host, own.reserved);
  }
}

void Application::release(std::uint32_t port, std::uint32_t events) {
  ports_[port].reserved -= events;
}

Operation& Application::open(OperationKind kind, std::uint32_t port, std::uint64_t size, base::Instant now) {
  Operation& operation = shared_.ledger.open(kind, life_.host, life_.number, now);
  operation.port = port;
  operation.size = size;
  const std::uint64_t more = kind != OperationKind::receive && random_.chance(kLongerMemory) ? random_.below(100) : 0;
  operation.region = regions_.lend(size + more, shared_.findings);
  return operation;
}

Operation* Application::settle(Operation& operation, Status status, std::uint32_t events) {
  shared_.trace.add(operation.submitted,
                    {kSubmitted, life_.host, operation.number, static_cast<std::uint64_t>(operation.kind),
                     operation.size, static_cast<std::uint64_t>(status)});
  shared_.trace.say(operation.submitted, "h{}        submits {} {} ({} B) to h{}: {}", life_.host,
                    static_cast<int>(operation.kind), operation.number, operation.size, operation.other_host,
                    to_string(status));
  if (status == Status::ok) {
    shared_.ledger.submitted(operation);
    return &operation;
  }
  const bool is_expected = status == Status::again || status == Status::no_memory ||
                           (operation.misuse != Status::ok && status == operation.misuse);
  SIM_CHECK(shared_.findings, is_expected, "host {}: submission of {} bytes answered '{}'", life_.host, operation.size,
            to_string(status));
  regions_.give_back(std::move(operation.region), shared_.findings);
  release(operation.port, events);
  shared_.ledger.take_back(operation);
  return nullptr;
}

Operation* Application::send(std::uint32_t flow, std::uint32_t to, std::uint32_t to_port, std::uint64_t size,
                             base::Instant now) {
  const std::uint32_t port = flow % static_cast<std::uint32_t>(ports_.size());
  if (!reserve(port, 1)) return nullptr;
  Operation& message = open(OperationKind::send, port, size, now);
  message.flow = flow;
  message.other_host = to;
  message.other_port = to_port;
  if (size >= kNamedSize) {
    fill_pattern(message.region->bytes().first(size), message.number);
  } else {
    std::ranges::fill(message.region->bytes().first(size), tiny_byte(life_.host, size));
  }
  path_.asked_for(address_of(to));
  // Counted before the call, because on one machine the message arrives within it.
  ++pending_to_[to];
  const Status status = engine_.messages().send(
      ports_[port].handle, {.to = {address_of(to), to_port}, .part = {message.region->pieces(), size, message.number}},
      message.handle, local(now));
  engine_.ports().notify_touched();
  if (status != Status::ok) --pending_to_[to];
  return settle(message, status, 1);
}

Operation* Application::expose(bool is_writable, std::uint64_t size, base::Instant now) {
  const auto port = static_cast<std::uint32_t>(random_.below(ports_.size()));
  if (!reserve(port, 1)) return nullptr;
  Operation& exposure =
      open(is_writable ? OperationKind::expose_writable : OperationKind::expose_readable, port, size, now);
  if (!is_writable) fill_pattern(exposure.region->bytes(), exposure.number);
  const Status status = engine_.messages().expose(
      ports_[port].handle,
      {.memory = exposure.region->pieces(), .length = size, .is_writable = is_writable, .cookie = exposure.number},
      exposure.handle, exposure.key);
  return settle(exposure, status, 1);
}

Operation* Application::transfer(const Request& request, base::Instant now) {
  const std::uint32_t port = request.flow % static_cast<std::uint32_t>(ports_.size());
  if (!reserve(port, 1)) return nullptr;
  Operation& operation = open(request.kind, port, request.size, now);
  operation.flow = request.flow;
  operation.other_host = request.to;
  operation.other_port = request.to_port;
  operation.partner = request.exposure;
  operation.misuse = request.misuse;
  if (request.kind == OperationKind::put) fill_pattern(operation.region->bytes(), operation.number);
  if (Operation* exposure = shared_.ledger.find(request.exposure); exposure != nullptr && request.misuse == Status::ok)
    exposure->partner = operation.number;
  path_.asked_for(address_of(request.to));
  ++pending_to_[request.to];
  const Status status = engine_.messages().transfer(ports_[port].handle, request.kind,
                                                    {.target = {address_of(request.to), request.to_port},
                                                     .target_epoch = request.epoch,
                                                     .key = request.key,
                                                     .memory = operation.region->pieces(),
                                                     .length = request.size,
                                                     .cookie = operation.number},
                                                    operation.handle, local(now));
  engine_.ports().notify_touched();
  if (status != Status::ok) --pending_to_[request.to];
  return settle(operation, status, 1);
}

void Application::cancel(Operation& operation, base::Instant now) {
  if (operation.state != Operation::State::pending) return;
  operation.is_cancel_wanted = true;
  shared_.trace.add(now, {kCanceled, life_.host, operation.number});
  shared_.trace.say(now, "h{}        cancels {}", life_.host, operation.number);
  const engine::PortHandle port = ports_[operation.port].handle;
  const bool is_pending = engine_.cancel(port, operation.handle, local(now));
  engine_.ports().notify_touched();
  SIM_CHECK(shared_.findings, is_pending || !engine_.ports().find(port)->events->is_empty(),
            "host {} cannot cancel operation {}: gone, and without an event", life_.host, operation.number);
}

void Application::post_receives(base::Instant now) {
  if (is_winding_down_) return;
  for (std::uint32_t port = 0; port < ports_.size(); ++port) {
    while (ports_[port].receives < plan_.receives_posted && post_receive(port, now)) {
    }
  }
}

bool Application::post_receive(std::uint32_t port, base::Instant now) {
  const std::uint32_t messages = plan_.messages_per_receive;
  if (!reserve(port, messages)) return false;
  const std::uint64_t size = std::max(
      message_size_max_,
      std::min<std::uint64_t>(message_size_max_ * std::min(messages, kReceiveSizesInBuffer), kReceiveSizeMost));
  Operation& receive = open(OperationKind::receive, port, size, now);
  receive.messages_max = messages;
  const Status status = engine_.messages().post_receive(ports_[port].handle,
                                                        {.memory = receive.region->pieces(),
                                                         .size_min = message_size_max_,
                                                         .messages_max = messages,
                                                         .cookie = receive.number},
                                                        receive.handle);
  if (settle(receive, status, messages) == nullptr) return false;
  ++ports_[port].receives;
  return true;
}

}  // namespace fairlead::sim
