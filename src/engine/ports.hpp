#pragma once
// The ports of an engine, by handle and by number, with what clients of the engine do at one: put events into its queue
// and see to it that its waiters are woken, once for all events of a pass.
//
// During a pass of a port's consumer (begin_poll, end_poll) its events go straight into the consumer's table as long as
// there is room, and nothing waits in the queue before them.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

#include "base/ensure.hpp"
#include "base/slab.hpp"
#include "base/socket_address.hpp"
#include "engine/handles.hpp"
#include "engine/port.hpp"
#include "engine/port_table.hpp"

namespace fairlead::engine {

class Ports {
 public:
  static constexpr std::uint32_t kNone = PortTable::kNone;

  /// `address` is the engine's, for errors.
  explicit Ports(const base::SocketAddress& address) : address_(address), ports_(kMost) {}

  /// in_use if the number is taken here; no_memory, and nothing is left of it.
  Result<PortHandle> open(std::uint32_t number);
  /// The highest free number of [first, first + count); not_available if there is none.
  Result<PortHandle> open_dynamic(std::uint32_t first, std::uint32_t count, std::uint32_t& number);
  /// Ports of another life, whose names these are, in slots that have no port yet: each then gets its number.
  bool restore(std::span<const std::uint64_t> names) { return ports_.restore(names); }
  std::vector<std::uint64_t> names() const { return ports_.names(); }
  Result<> restore(std::uint32_t slot, std::uint32_t number);
  /// It has no operations any more.
  void free(PortHandle handle);

  /// Null if it is closed.
  Port* find(PortHandle handle) { return ports_.find(handle.slot, handle.generation); }
  Port& operator[](std::uint32_t slot) { return ports_[slot]; }
  /// Null if it is closed. Any number may be asked for.
  Port* find_slot(std::uint32_t slot) {
    return slot < ports_.size() ? ports_.find(slot, ports_.generation(slot)) : nullptr;
  }
  PortHandle handle(std::uint32_t slot) const { return {slot, ports_.generation(slot)}; }
  /// The slot of an open port's number; kNone if there is none.
  std::uint32_t find_number(std::uint32_t number) const { return numbers_.find(number); }

  /// Calls visit(slot, port) for each open one.
  template <typename Visit>
  void for_each(Visit&& visit) {
    ports_.for_each(std::forward<Visit>(visit));
  }

  /// That have not ended, of all of them.
  std::uint32_t operations() const {
    std::uint32_t sum = 0;
    for (std::uint32_t slot = 0; slot < ports_.size(); ++slot) sum += ports_[slot].operations;
    return sum;
  }

  /// make(place) constructs a Completion where it is read.
  template <typename Make>
  void put_event(std::uint32_t slot, Make&& make) {
    put_event(ports_[slot], slot, make);
  }
  template <typename Make>
  void put_event(Port& port, std::uint32_t slot, Make&& make);
  void produce(std::uint32_t slot, const Completion& completion) {
    put_event(slot, [&](void* place) { new (place) Completion(completion); });
  }
  /// A message found no buffer there.
  void drop(std::uint32_t slot);
  /// A peer is lost: ends the waits of those that watch.
  void tell_loss();
  /// It has news that its waiters have to be woken for.
  void touch(std::uint32_t slot);
  /// Wakes the waiters of all ports that got news since the last call.
  void notify_touched() {
    if (!touched_.empty()) notify();
  }

  /// What waits for the consumer goes to `to` first.
  void begin_poll(Port& port, std::span<Completion> to);
  /// How many events `to` has got.
  std::size_t end_poll(Port& port, std::span<Completion> to);
  /// The pass is not its consumer's alone any more: others must get on.
  void forget_poller() { polled_ = nullptr; }
  /// Whoever polls takes as much as the table holds: what came beyond that would lie in the queue meanwhile, no better
  /// than in the ring.
  bool has_room() const { return polled_ == nullptr || polled_->direct != polled_->direct_end; }

 private:
  static constexpr std::uint32_t kMost = 65536;

  Result<PortHandle> make(std::uint32_t number);
  template <typename Slot>
  Result<std::uint32_t> make_at(std::uint32_t number, Slot&& slot);
  void notify();

  base::SocketAddress address_;
  base::Slab<Port> ports_;
  PortTable numbers_;
  std::vector<std::uint32_t> touched_;
  Port* polled_ = nullptr;  // whose consumer makes this pass
};

template <typename Make>
inline void Ports::put_event(Port& port, std::uint32_t slot, Make&& make) {
  if (port.direct != port.direct_end) {
    make(static_cast<void*>(port.direct++));
    return;
  }
  // The face reserved the room before it submitted; a face that did not is our own fault.
  ENSURE(port.events->produce_in_place(make), "port {}: no room for an event, though it has to be reserved",
         port.number);
  touch(slot);
}

}  // namespace fairlead::engine
