#pragma once
// The ports of an engine, by handle and by number. Clients of the engine put events into the queue of a port; its
// waiters are woken once for all events of a pass.
//
// During a pass of a port's consumer (begin_poll, end_poll), events go directly into the consumer's array, while it has
// room and the queue is empty.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

#include "base/slab.hpp"
#include "base/socket_address.hpp"
#include "engine/handles.hpp"
#include "engine/port.hpp"
#include "engine/port_table.hpp"

namespace fairlead::engine {

class Ports {
 public:
  static constexpr std::uint32_t kNone = PortTable::kNone;

  /// `address` is the engine's, for error texts.
  explicit Ports(const base::SocketAddress& address) : address_(address), ports_(kMost) {}

  /// Opens a port. Returns `in_use` if the number is taken, `invalid` if it is too large, or `no_memory`. A failure
  /// leaves nothing behind.
  Result<PortHandle> open(std::uint32_t number);
  /// Opens the highest free number in [first, first + count). Returns `not_available` if none is free. Looks at no more
  /// than kMost + 1 numbers.
  Result<PortHandle> open_dynamic(std::uint32_t first, std::uint32_t count, std::uint32_t& number);
  /// Restores the slots of an earlier life by their names. The caller then restores each port in its slot.
  bool restore(std::span<const std::uint64_t> names) { return ports_.restore(names); }
  std::vector<std::uint64_t> names() const { return ports_.names(); }
  Result<> restore(std::uint32_t slot, std::uint32_t number);
  /// The port must have no operations.
  void free(PortHandle handle);

  /// Returns null if the port is closed.
  Port* find(PortHandle handle) { return ports_.find(handle.slot, handle.generation); }
  Port& operator[](std::uint32_t slot) { return ports_[slot]; }
  /// Returns null if no open port has this slot. Any number is permitted.
  Port* find_slot(std::uint32_t slot) {
    return slot < ports_.size() ? ports_.find(slot, ports_.generation(slot)) : nullptr;
  }
  PortHandle handle(std::uint32_t slot) const { return {slot, ports_.generation(slot)}; }
  /// Returns the slot of the open port with this number, or kNone.
  std::uint32_t find_number(std::uint32_t number) const { return numbers_.find(number); }

  /// Calls visit(slot, port) for each open port.
  template <typename Visit>
  void for_each(Visit&& visit) {
    ports_.for_each(std::forward<Visit>(visit));
  }

  /// Returns the number of operations of all ports that have not ended.
  std::uint32_t operations() const {
    std::uint32_t sum = 0;
    for (std::uint32_t slot = 0; slot < ports_.size(); ++slot) sum += ports_[slot].operations;
    return sum;
  }

  /// Adds an event: make(place) constructs the Completion in place.
  template <typename Make>
  void put_event(std::uint32_t slot, Make&& make) {
    put_event(ports_[slot], slot, make);
  }
  template <typename Make>
  [[gnu::always_inline]] void put_event(Port& port, std::uint32_t slot, Make&& make) {
    const bool is_direct = port.direct != port.direct_end;
    make(static_cast<void*>(is_direct ? port.direct++ : queue_place(port)));
    if (!is_direct) publish(port, slot);
  }
  void produce(std::uint32_t slot, const Completion& completion) {
    put_event(slot, [&](void* place) { new (place) Completion(completion); });
  }
  /// Counts a message that found no buffer, and wakes a consumer that watches drops.
  void drop(std::uint32_t slot);
  /// A peer is lost: ends the waits on ports that watch losses.
  void tell_loss();
  /// Notes that the port's waiters must be woken.
  void touch(std::uint32_t slot);
  /// Wakes the waiters of all ports touched since the last call.
  void notify_touched() {
    if (!touched_.empty()) notify();
  }

  /// Begins a pass of the port's consumer: moves queued events to `to`; new ones follow them there.
  void begin_poll(Port& port, std::span<Completion> to);
  /// Ends it. Returns the number of events in `to`.
  std::size_t end_poll(Port& port, std::span<Completion> to);
  /// Lifts the limit of has_room() for the rest of the pass.
  void forget_poller() { polled_ = nullptr; }
  /// Returns false if the poller's array is full. Further messages then stay in the ring, since their events would only
  /// wait in the queue.
  bool has_room() const { return polled_ == nullptr || polled_->direct != polled_->direct_end; }

 private:
  static constexpr std::uint32_t kMost = 65536;

  Result<PortHandle> make(std::uint32_t number);
  template <typename Slot>
  Result<std::uint32_t> make_at(std::uint32_t number, Slot&& slot);
  /// Returns where the next event of the port's queue is constructed; publish() then hands it to the consumer.
  Completion* queue_place(Port& port);
  void publish(Port& port, std::uint32_t slot);
  void notify();

  base::SocketAddress address_;
  base::Slab<Port> ports_;
  PortTable numbers_;
  std::vector<std::uint32_t> touched_;
  Port* polled_ = nullptr;  // its consumer makes this pass, and its array limits the pass
};

}  // namespace fairlead::engine
