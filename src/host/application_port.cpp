#include "host/application_port.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "host/call.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint64_t kCarriedOutMax = 4ULL << 20;  // bytes in one go: others wait meanwhile

}  // namespace

Result<std::unique_ptr<ApplicationPort>> ApplicationPort::open(embedded::EmbeddedCore& core, engine::PortHandle handle,
                                                               std::span<std::byte> events, PortPage& page,
                                                               EventRoom& room) {
  std::unique_ptr<ApplicationPort> port(new ApplicationPort(core, handle, events, page, room));
  auto producer = queue::Producer::attach(port->segment_);
  if (!producer) return std::unexpected(std::move(producer.error()));
  if (producer->element_bytes() != sizeof(Event)) {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("events of {} bytes: this host engine writes {}", producer->element_bytes(), sizeof(Event))});
  }
  port->events_ = std::move(*producer);
  page.keys.given.store(0, std::memory_order_relaxed);
  core.watch_drops(handle);
  core.watch_losses(handle);
  return port;
}

std::unique_ptr<ApplicationPort> ApplicationPort::resume(embedded::EmbeddedCore& core, engine::PortHandle handle,
                                                         std::span<std::byte> events, PortPage& page, EventRoom& room,
                                                         const queue::Producer::Position& position) {
  std::unique_ptr<ApplicationPort> port(new ApplicationPort(core, handle, events, page, room));
  auto producer = queue::Producer::resume(port->segment_, position);
  if (producer && producer->element_bytes() == sizeof(Event)) port->events_ = std::move(*producer);
  core.watch_drops(handle);
  core.watch_losses(handle);
  return port;
}

Status ApplicationPort::reserve(std::uint32_t events) {
  if (!reserved_.reserve(events)) return Status::no_memory;
  const Status status = core_.reserve_events(handle_, events);
  if (status != Status::ok) reserved_.release(events);
  return status;
}

void ApplicationPort::release(std::uint32_t events) {
  core_.release_events(handle_, events);
  reserved_.release(events);
}

Status ApplicationPort::submit(const Request& request, std::span<const iovec> memory, std::uint32_t events,
                               Submitted& submitted) {
  if (const Status full = reserve(events); full != Status::ok) {
    if (request.kind == static_cast<std::uint8_t>(Request::Kind::expose)) take_back_key();
    return full;
  }
  const Status status = pass_on(request, memory, submitted);
  if (status != Status::ok || submitted.is_done) release(events);
  return status;
}

Status ApplicationPort::give_key() {
  engine::OperationHandle blank;
  std::uint64_t key = 0;
  const Status status = core_.own_keys().add(handle_, blank, key);
  if (status == Status::ok) keys.give(blank, key, page_.keys);
  return status;
}

Status ApplicationPort::pass_on(const Request& request, std::span<const iovec> memory, Submitted& submitted) {
  engine::OperationHandle& operation = submitted.operation;
  const engine::RemotePort to{from_plain(request.to), request.to_port};
  const std::uint64_t cookie = static_cast<std::uint32_t>(request.operation), length = request.length;
  const engine::Transfer transfer{.target = to,
                                  .target_epoch = request.epoch,
                                  .key = request.key,
                                  .memory = memory,
                                  .length = length,
                                  .cookie = cookie,
                                  .carried_out_max = kCarriedOutMax};
  switch (static_cast<Request::Kind>(request.kind)) {
    case Request::Kind::receive:
      return core_.post_receive(
          handle_,
          {.memory = memory, .size_min = request.size_min, .messages_max = request.messages_max, .cookie = cookie},
          operation);
    case Request::Kind::send: {
      const bool is_confirmed = (request.flags & Request::kIsConfirmed) != 0;
      return core_.send(handle_, {.to = to, .part = {memory, length, cookie}, .is_confirmed = is_confirmed}, operation);
    }
    case Request::Kind::expose: {
      const bool is_writable = (request.flags & Request::kIsWritable) != 0;
      operation = keys.take();
      const Status status = core_.own_keys().fill(
          handle_, operation, {.memory = memory, .length = length, .is_writable = is_writable, .cookie = cookie});
      if (status != Status::ok) core_.cancel(handle_, operation);
      return status;
    }
    case Request::Kind::put:
      return core_.put(handle_, transfer, operation);
    case Request::Kind::get:
      return core_.get(handle_, transfer, operation);
    case Request::Kind::active:
      return active->send(request, memory, cookie, submitted.is_done);
    default:
      break;
  }
  return Status::invalid;
}

bool ApplicationPort::produce(const Event& event, bool is_news) {
  std::byte* const element = events_ ? events_->pnext() : nullptr;
  if (element == nullptr) return false;
  std::memcpy(element, &event, sizeof event);
  events_->put();
  has_news_ |= is_news;
  return true;
}

// Follows the protocol of queue::Waiter: at least one side sees the other.
void ApplicationPort::tell() {
  if (!std::exchange(has_news_, false)) return;
  if (page_.sleeper.sleeping.exchange(0, std::memory_order_acq_rel) != 0) socket_.nudge();
}

void ApplicationPort::show_drops() {
  if (core_.dropped_no_buffer(handle_) == dropped_) return;
  core_.watch_drops(handle_);  // before reading the count: a later drop then ends the sleep
  dropped_ = core_.dropped_no_buffer(handle_);
  page_.dropped.store(dropped_, std::memory_order_release);
  has_news_ = true;
}

}  // namespace fairlead::host
