#include "engine/ports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/ensure.hpp"

namespace fairlead::engine {

// Allocates all memory before taking the slot, so that a failure leaves nothing behind.
template <typename Slot>
Result<std::uint32_t> Ports::make_at(std::uint32_t number, Slot&& slot_of_it) try {
  if (ports_.used() == kMost) {
    return std::unexpected(
        Error{Status::no_memory, 0, fmt::format("{} ports are open here already: close some", kMost)});
  }
  auto waiter = queue::Waiter::create();
  if (!waiter) return std::unexpected(std::move(waiter.error()));
  auto own_waiter = std::make_unique<queue::Waiter>(std::move(*waiter));
  auto events = std::make_unique<queue::EventQueue<Completion>>();
  events->consumer().look_at_once();
  touched_.reserve(ports_.used() + 1);  // each port is in it at most once
  numbers_.set(number, kNone);          // allocates its row
  const std::uint32_t slot = slot_of_it();
  if (slot == kNone) throw std::bad_alloc();
  Port& port = ports_[slot];
  port.number = number;
  port.waiter = std::move(own_waiter);
  port.events = std::move(events);
  numbers_.set(number, slot);
  return slot;
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{Status::no_memory, 0, "no memory"});
}

Result<PortHandle> Ports::make(std::uint32_t number) {
  const auto slot = make_at(number, [&] { return ports_.acquire(); });
  if (!slot) return std::unexpected(slot.error());
  return PortHandle{*slot, ports_.generation(*slot)};
}

Result<> Ports::restore(std::uint32_t slot, std::uint32_t number) {
  const Port* const one = find_slot(slot);
  if (one == nullptr || one->events || number > PortTable::kNumberMax || find_number(number) != kNone)
    return std::unexpected(Error{Status::invalid, 0, fmt::format("port {} cannot be in slot {}", number, slot)});
  const auto made = make_at(number, [&] { return slot; });
  return made ? Result<>() : std::unexpected(made.error());
}

Result<PortHandle> Ports::open(std::uint32_t number) {
  if (number > PortTable::kNumberMax) {
    return std::unexpected(
        Error{Status::invalid, 0, fmt::format("port number {}: want at most {}", number, PortTable::kNumberMax)});
  }
  if (find_number(number) != kNone) {
    return std::unexpected(
        Error{Status::in_use, 0, fmt::format("port {} of {} is in use", number, address_.to_string())});
  }
  return make(number);
}

// At most kMost ports are open, so one of any kMost + 1 numbers is free.
Result<PortHandle> Ports::open_dynamic(std::uint32_t first, std::uint32_t count, std::uint32_t& number) {
  constexpr std::uint32_t kEnd = PortTable::kNumberMax + 1;
  const std::uint32_t numbers = first < kEnd ? std::min(count, kEnd - first) : 0;
  for (std::uint32_t tried = 0; tried < std::min(numbers, kMost + 1); ++tried) {
    const std::uint32_t candidate = first + numbers - 1 - tried;
    if (find_number(candidate) != kNone) continue;
    number = candidate;
    return make(number);
  }
  return std::unexpected(Error{Status::not_available, 0,
                               fmt::format("all {} ports from {} of {} are in use: stop some, or use another portal",
                                           count, first, address_.to_string())});
}

void Ports::free(PortHandle handle) {
  Port* const port = find(handle);
  if (port == nullptr) return;
  ENSURE(port->operations == 0, "port {} freed with {} operations", port->number, port->operations);
  std::erase(touched_, handle.slot);
  numbers_.set(port->number, kNone);
  port->active.reset();
  port->spares.reset();
  port->events.reset();
  port->waiter.reset();
  ports_.release(handle.slot);
}

Completion* Ports::queue_place(Port& port) {
  std::byte* const place = port.events->producer().pnext();
  // The API reserves the room before it submits an operation; if the room is missing, the API has a bug.
  ENSURE(place != nullptr, "port {}: no room for an event, though it has to be reserved", port.number);
  return reinterpret_cast<Completion*>(place);
}

void Ports::publish(Port& port, std::uint32_t slot) {
  port.events->producer().put();
  touch(slot);
}

// Only the first drop wakes a watcher, which then reads the count: a thousand drops in a row cause one wake-up.
void Ports::drop(std::uint32_t slot) {
  Port& port = ports_[slot];
  port.dropped_no_buffer.fetch_add(1);
  if (!port.watches_drops.exchange(false)) return;
  port.is_interrupted.store(true, std::memory_order_release);
  touch(slot);
}

void Ports::tell_loss() {
  ports_.for_each([&](std::uint32_t slot, Port& port) {
    if (!port.watches_losses.load(std::memory_order_relaxed)) return;
    port.is_interrupted.store(true, std::memory_order_release);
    touch(slot);
  });
}

void Ports::touch(std::uint32_t slot) {
  Port& port = ports_[slot];
  if (port.is_touched) return;
  port.is_touched = true;
  touched_.push_back(slot);
}

void Ports::notify() {
  for (const std::uint32_t slot : touched_) {
    ports_[slot].is_touched = false;
    ports_[slot].waiter->notify();
  }
  touched_.clear();
}

void Ports::begin_poll(Port& port, std::span<Completion> to) {
  port.direct = to.data() + (port.events->is_empty() ? 0 : port.events->consume(to));
  port.direct_end = to.data() + to.size();
  // If waiting events have filled `to`, new ones go through the queue, so that nothing holds up the pass.
  if (port.direct != port.direct_end) polled_ = &port;
}

std::size_t Ports::end_poll(Port& port, std::span<Completion> to) {
  polled_ = nullptr;
  const auto count = static_cast<std::size_t>(port.direct - to.data());
  port.direct = port.direct_end = nullptr;
  return count;
}

}  // namespace fairlead::engine
