// The straight line of short messages inside a host: from the call into the ring, and from the ring into the posted
// buffer, with an event at each end and nothing kept in between but the order of what was sent. Whatever is not
// straight (no room, no buffer, several pieces, messages under way in chunks) goes the general way, which knows all
// cases.

#include "base/ensure.hpp"
#include "engine/engine.hpp"
#include "qp/queue_pairs.hpp"
#include "shm/transport_collect.hpp"
#include "shm/transport_fast_path.hpp"

namespace fairlead::engine {

bool Engine::is_near() const {
  return transports_ && transports_->is_network_idle() && deferred_.is_empty() && !active_.is_owing();
}

// Sending ------------------------------------------------------------------------------------------------------------

std::size_t Engine::send_near(PortHandle handle, const RemotePort& to, std::span<const link::SendPart> parts,
                              std::span<OperationHandle> names) {
  Port* port = ports_.find(handle);
  if (port == nullptr) [[unlikely]]
    return 0;
  const link::PeerHandle* peer = transports_->find_local(to.engine);
  if (peer == nullptr) [[unlikely]]
    return 0;
  // The peer's place in the shm transport and the record's in its ring name it, as far as a cancel has to know.
  const std::uint32_t slot = kNearSlots | (peer->slot - shm::Transport::kFirstSlot);
  const std::size_t sent = shm_transport()->send_now(
      *peer, {.source_port = port->number, .target_port = to.port, .owner = handle.slot, .parts = parts}, now_,
      [&](std::size_t index, std::uint32_t number) { names[index] = {slot, number, now_}; });
  port->operations += static_cast<std::uint32_t>(sent);
  counters_.messages_sent += sent;
  return sent;
}

void Engine::end_near(const shm::ShortEnd& end) {
  if (end.owner == shm::Transport::kOfFlows) return flows_->end_outcome({end.cookie, end.status}, now_);
  put_near_end(end, now_);
}

void Engine::put_near_end(const shm::ShortEnd& end, base::Instant now) {
  Port& port = ports_[end.owner];
  --port.operations;
  ports_.put_event(end.owner, [&](void* place) {
    new (place) Completion{.cookie = end.cookie,
                           .length = end.status == Status::ok ? end.length : 0,
                           .offset = 0,
                           .time_ns = now.time_since_epoch().count(),
                           .source = {},
                           .status = end.status,
                           .is_final = true};
  });
}

// It is in the peer's memory already: its end comes by itself.
bool Engine::cancel_near(const OperationHandle& name) {
  return shm_transport() != nullptr && shm_transport()->is_on_its_way(name.slot & ~kNearSlots, name.generation);
}

// Receiving ----------------------------------------------------------------------------------------------------------

/// Takes what the shm transport has. Short messages come in runs for one buffer from one port; what was looked up for
/// the first holds for the next, as long as nothing else came between them.
struct Engine::ShmTaker {
  Engine& engine;
  base::Instant now;
  Port* port = nullptr;  // of the short message taken last, if the run may go on; and its ...
  Operation* operation = nullptr;
  link::PeerHandle peer{};
  std::uint32_t port_slot = Ports::kNone, slot = kNone, target_port = 0;
  const base::SocketAddress* source = nullptr;

  bool has_room() const { return engine.ports_.has_room(); }
  bool brief(link::PeerHandle from, const wire::ShmHead& head, std::span<const std::byte> bytes) {
    if (port == nullptr || head.target_port != target_port || !(from == peer)) [[unlikely]] {
      if (!find(from, head.target_port)) return false;
    }
    if (head.operation != static_cast<std::uint8_t>(wire::Operation::message)) [[unlikely]]
      return false;
    const std::uint64_t offset = operation->fill, size = bytes.size(), room = operation->length - offset;
    if (size > room) [[unlikely]]
      return false;
    operation->permit(offset, size).write_short(bytes);
    operation->fill = offset + size;
    const bool is_final = --operation->messages_left == 0 || room - size < operation->size_min;
    if (is_final) [[unlikely]]
      port->posted.remove(engine.operations_, slot);
    ++engine.counters_.messages_received;
    engine.ports_.put_event(port_slot, [&](void* place) {
      new (place) Completion{.cookie = operation->cookie,
                             .length = size,
                             .offset = offset,
                             .time_ns = now.time_since_epoch().count(),
                             .source = {*source, head.source_port},
                             .status = Status::ok,
                             .is_final = is_final};
    });
    if (is_final) [[unlikely]] {
      engine.release_operation(slot);
      port = nullptr;
    }
    return true;
  }
  bool turn(link::PeerHandle from, const wire::ShmHead& head, const wire::ShmOrdered& turn,
            std::span<const std::byte> bytes) {
    return engine.flows_ && engine.flows_->deliver_short(from, head, turn, bytes, now);
  }
  void deliver(const link::Delivery& delivery) {
    port = nullptr;
    engine.deliver(delivery, now);
  }
  void ended(const shm::ShortEnd& end) {
    if (end.owner == shm::Transport::kOfFlows) return engine.flows_->end_outcome({end.cookie, end.status}, now);
    engine.put_near_end(end, now);
  }

  // The first posted buffer of the port, if it is one piece and nothing unfinished is in it.
  bool find(link::PeerHandle from, std::uint32_t number) {
    port = nullptr;
    port_slot = engine.ports_.find_number(number);
    if (port_slot == Ports::kNone) [[unlikely]]
      return false;
    Port& found = engine.ports_[port_slot];
    slot = found.posted.first();
    if (slot == kNone) [[unlikely]]
      return false;
    operation = &engine.operations_[slot];
    if (operation->first_placement != kNone || operation->memory.size() != 1) [[unlikely]]
      return false;
    port = &found;
    target_port = number;
    peer = from;
    source = &engine.shm_transport()->address(from);
    return true;
  }
};

std::size_t Engine::progress_into(Port& port, std::span<Completion> to, base::Instant now, bool& any) {
  ports_.begin_poll(port, to);
  any = progress(now);
  return ports_.end_poll(port, to);
}

bool Engine::collect_shm(base::Instant now) {
  ShmTaker taker{*this, now};
  bool any = shm_transport()->collect(now, taker);
  if (now >= attend_at_) [[unlikely]] {
    attend_at_ = now + kAttendEvery;
    // Most have ended with the notice of their peer's loss, which says why; a peer that was not known yet has none.
    if (const std::uint64_t closings = shm_transport()->connections().closings(); closings != closings_seen_) {
      closings_seen_ = closings;
      end_abandoned(Status::refused);
    }
    ports_.forget_poller();  // all that a peer has left
    any |= shm_transport()->attend(now, taker);
    transports_->vouch(now);
  }
  return any;
}

}  // namespace fairlead::engine
