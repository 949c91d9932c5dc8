#include "host/application_port.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace fairlead::host {

Result<std::unique_ptr<ApplicationPort>> ApplicationPort::open(engine::Core& core, engine::PortHandle handle,
                                                               std::span<std::byte> events, PortPage& page) {
  std::unique_ptr<ApplicationPort> port(new ApplicationPort(core, handle, events, page));
  auto producer = queue::Producer::attach(port->segment_);
  if (!producer) return std::unexpected(std::move(producer.error()));
  if (producer->element_bytes() != sizeof(Event)) {
    return std::unexpected(
        Error{Status::invalid, 0,
              fmt::format("events of {} bytes: this host engine writes {}", producer->element_bytes(), sizeof(Event))});
  }
  port->events_ = std::move(*producer);
  core.watch_drops(handle);
  return port;
}

bool ApplicationPort::produce(const Event& event) {
  std::byte* const element = events_->pnext();
  if (element == nullptr) return false;
  std::memcpy(element, &event, sizeof event);
  events_->put();
  has_news_ = true;
  return true;
}

// The same protocol as of queue::Waiter: one of the two sees the other.
void ApplicationPort::tell() {
  if (!std::exchange(has_news_, false)) return;
  if (page_.sleeper.sleeping.exchange(0, std::memory_order_acq_rel) != 0) socket_.nudge();
}

void ApplicationPort::show_drops() {
  const std::uint64_t dropped = core_.dropped_no_buffer(handle_);
  if (dropped == dropped_) return;
  dropped_ = dropped;
  page_.dropped.store(dropped, std::memory_order_release);
  core_.watch_drops(handle_);
  has_news_ = true;
}

}  // namespace fairlead::host
