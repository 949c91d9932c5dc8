// Requests that the caller waits for, and the end of active ports.

#include <chrono>
#include <thread>

#include "host/host_core.hpp"

namespace fairlead::host {
namespace {

constexpr base::Duration kLeaveMost = std::chrono::milliseconds(200);
constexpr base::Duration kLeaveStep = std::chrono::milliseconds(1);

}  // namespace

/// Waits while the ring is full: the host engine consumes requests independently of what they wait for. Returns the
/// request's number.
std::uint64_t HostCore::push_surely(engine::PortHandle port, Request request) {
  request.port = static_cast<std::uint16_t>(port.slot);
  for (;;) {
    std::unique_lock lock(mutex_);
    const Status status = push(request);
    const std::uint64_t number = requests_->produced();
    lock.unlock();
    host_.wake();
    if (status != Status::again) return number;
    look_for_end();
    std::this_thread::yield();
  }
}

/// Returns the host engine's answer.
Status HostCore::ask_and_wait(engine::PortHandle port, const Request& request, std::uint64_t* key) {
  const std::scoped_lock calls(call_mutex_);
  std::uint64_t ignored = 0;
  return wait_for_reply(push_surely(port, request), key != nullptr ? *key : ignored);
}

void HostCore::take_leave() {
  if (mark_.is_inherited()) return;
  engine::PortHandle active;
  {
    const std::scoped_lock lock(mutex_);
    for (std::uint32_t index = 0; index < kPortsMax; ++index)
      if (ports_[index] && ports_[index]->active) active = {index, ports_[index]->generation()};
  }
  if (active == engine::PortHandle{}) return;
  const Request leave{.kind = static_cast<std::uint8_t>(Request::Kind::leave)};
  const auto end = base::MonotonicClock::now() + kLeaveMost;
  for (std::uint64_t sending = 1; sending > 0 && base::MonotonicClock::now() < end;) {
    if (ask_and_wait(active, leave, &sending) != Status::ok) return;
    if (sending > 0) std::this_thread::sleep_for(kLeaveStep);
  }
}

}  // namespace fairlead::host
