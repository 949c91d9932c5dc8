#include "host/client_port.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace fairlead::host {

Result<queue::Consumer> ClientPort::make_events(ClientMemory& memory, std::uint32_t index) {
  return queue::Consumer::create(memory.events(index),
                                 {.element_bytes = sizeof(Event), .elements = kEventsAtFirst + 1});
}

Status ClientPort::reserve(std::uint32_t count) {
  const std::scoped_lock lock(taking_);
  if (!reserved_.reserve(count)) return Status::no_memory;
  const std::uint64_t needed = reserved_.reserved(), capacity = events_.size() - 1;
  if (needed <= capacity) return Status::ok;
  const std::uint64_t growth = std::min(std::max(needed - capacity, capacity / 2), kEventsMax - capacity);
  const Status status = events_.add({}, static_cast<std::uint32_t>(growth));
  if (status != Status::ok) reserved_.release(count);
  return status;
}

/// Copies the next event. Returns false if there is none.
bool ClientPort::read(Event& event) {
  const std::byte* const element = events_.get();
  if (element == nullptr) return false;
  std::memcpy(&event, element, sizeof event);
  return true;
}

void ClientPort::interrupt() {
  is_interrupted_.store(true, std::memory_order_release);
  wake_sleeper();
}

// Clears the sleeper's announcement, if there is one. The host engine returns the nudge, which wakes the sleeper;
// otherwise the end of the connection does.
void ClientPort::wake_sleeper() {
  if (page_.sleeper.sleeping.exchange(0, std::memory_order_acq_rel) != 0) socket_.nudge();
}

void ClientPort::forget_interrupt() {
  is_interrupted_.store(false, std::memory_order_relaxed);
  forget_losses();
  if (has_dropped()) drops_watched_.store(kNoDrops, std::memory_order_relaxed);
}

bool ClientPort::disarm() {
  page_.sleeper.sleeping.exchange(0, std::memory_order_acq_rel);
  std::array<std::byte, 8> nudges;
  for (;;) {
    const auto letter = socket_.receive(nudges);
    if (!letter) return true;
    if (letter->bytes == 0) return false;
  }
}

}  // namespace fairlead::host
