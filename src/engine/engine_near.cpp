// The straight line of short messages inside a host: from the call into the ring, and from the ring into the posted
// buffer, with an event at each end and nothing kept in between but the order of what was sent. Whatever is not
// straight (no room, no buffer, several pieces, messages under way in chunks) goes the general way, which knows all
// cases.

#include <cstring>

#include "engine/engine.hpp"
#include "engine/flows.hpp"

namespace fairlead::engine {

bool Engine::is_near() const {
  return link_ && lane() != nullptr && network_looks_ >= kNetworkLooks && lane()->has_peers() && deferred_.empty() &&
         link_->counters().messages_pending == 0;
}

// Sending ------------------------------------------------------------------------------------------------------------

bool Engine::send_near(PortHandle handle, const Send& send, OperationHandle& name) {
  if (send.is_loan || !is_near(send.to.engine) || send.memory.size() != 1 || send.length > send.memory[0].iov_len) return false;
  Port* port = ports_.find(handle.slot, handle.generation);
  if (port == nullptr) return false;
  const NearSend message{.source_port = port->number,
                         .target_port = send.to.port,
                         .bytes = {static_cast<const std::byte*>(send.memory[0].iov_base), send.length},
                         .cookie = send.cookie,
                         .owner = handle.slot};
  const std::uint64_t number = lane()->send_now(last_peer_, message, now_);
  if (number == 0) return false;
  ++port->operations;
  ++counters_.messages_sent;
  // The peer's place in the lane and the record's in its ring name it, as far as a cancel has to know.
  name = {kNearSlots | (last_peer_.slot - Lane::kFirstSlot), static_cast<std::uint32_t>(number), now_};
  return true;
}

void Engine::end_near(const NearEnd& end) {
  --ports_[end.owner].operations;
  produce(end.owner, {.cookie = end.cookie,
                      .length = end.status == Status::ok ? end.length : 0,
                      .offset = 0,
                      .time_ns = now_.time_since_epoch().count(),
                      .source = {},
                      .status = end.status,
                      .is_final = true});
}

// It is in the peer's memory already: its end comes by itself.
bool Engine::cancel_near(const OperationHandle& name) {
  return lane() != nullptr && lane()->is_on_its_way(name.slot & ~kNearSlots, name.generation);
}

// Receiving ----------------------------------------------------------------------------------------------------------

struct Engine::LaneTaker {
  Engine& engine;
  base::Instant now;

  bool brief(link::PeerHandle from, const wire::LaneHead& head, std::span<const std::byte> bytes) {
    return engine.take_brief(from, head, bytes);
  }
  void deliver(const link::Delivery& delivery) { engine.deliver(delivery, now); }
  void ended(const NearEnd& end) { engine.end_near(end); }
};

bool Engine::collect_lane(base::Instant now) {
  LaneTaker taker{*this, now};
  bool any = lane()->collect(now, taker);
  if (now >= attend_at_) [[unlikely]] {
    attend_at_ = now + kNetworkLookEvery;
    // Most have ended with the notice of their peer's loss, which says why; a peer that was not known yet has none.
    if (const std::uint64_t closings = lane()->hub().closings(); closings != closings_seen_) {
      closings_seen_ = closings;
      end_abandoned(Status::refused);
    }
    any |= lane()->attend(now, taker);
  }
  return any;
}

/// A message for the first posted buffer of its port, if that has room in one piece and nothing unfinished in it.
inline bool Engine::take_brief(link::PeerHandle from, const wire::LaneHead& head, std::span<const std::byte> bytes) {
  if (head.operation != static_cast<std::uint8_t>(wire::Operation::message)) return false;
  const std::uint32_t port_slot = port_numbers_.find(head.target_port);
  if (port_slot == PortTable::kNone) [[unlikely]]
    return false;
  Port& port = ports_[port_slot];
  const std::uint32_t slot = port.posted.first();
  if (slot == kNone) [[unlikely]]
    return false;
  Operation& operation = operations_[slot];
  const std::uint64_t offset = operation.fill, size = bytes.size();
  if (size > operation.length - offset || operation.first_placement != kNone || operation.memory.size() != 1)
      [[unlikely]]
    return false;
  std::memcpy(static_cast<std::byte*>(operation.memory[0].iov_base) + offset, bytes.data(), size);
  operation.fill = offset + size;
  const bool is_final = --operation.messages_left == 0 || operation.length - operation.fill < operation.size_min;
  if (is_final) [[unlikely]]
    port.posted.remove(operations_, slot);
  ++counters_.messages_received;
  produce(port_slot, {.cookie = operation.cookie,
                      .length = size,
                      .offset = offset,
                      .time_ns = now_.time_since_epoch().count(),
                      .source = {lane()->address(from), head.source_port},
                      .status = Status::ok,
                      .is_final = is_final});
  if (is_final) release_operation(slot);
  return true;
}

}  // namespace fairlead::engine
