// Active messages between faces: sent through the link, or handed over where both ends are here; received into the
// port's arrivals, or answered why not.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/scatter.hpp"
#include "engine/active_wire.hpp"
#include "engine/engine.hpp"

namespace fairlead::engine {

using namespace active_wire;

namespace {

Status status_of(std::uint8_t byte) {
  return byte <= std::to_underlying(Status::system) ? static_cast<Status>(byte) : Status::system;
}

wire::Envelope envelope_of(const ActiveMessage& message, std::uint32_t source_port, std::uint64_t secret) {
  return {.operation = operation_of(message.kind),
          .status = status_byte(message),
          .flags = message.word,
          .source_port = source_port,
          .target_port = message.to.port,
          .key = access_of(message),
          .cookie = message.name,
          .offset = message.offset,
          .a = shown_secret(message.kind, secret)};
}

}  // namespace

Status Engine::activate(PortHandle handle) {
  Port* port = ports_.find(handle);
  if (port == nullptr) return Status::stale;
  if (port->active) return Status::bad_state;
  port->active = std::make_unique<ActivePort>(
      ActivePort::Bounds{.arrivals_max = static_cast<std::uint32_t>(options_.get(Option::active_messages_max)),
                         .memory_max = options_.get(Option::active_memory_max),
                         .packed_max = static_cast<std::uint32_t>(options_.get(Option::active_packed_max))},
      secrets_.next());
  return Status::ok;
}

// Sending ------------------------------------------------------------------------------------------------------------

Status Engine::send_active(PortHandle handle, const ActiveMessage& message, base::Instant now,
                           Conversation* conversation) {
  Port* port = ports_.find(handle);
  if (port == nullptr || !port->active) return Status::stale;
  // Its answer may be here before this returns. If it is not sent the face sends it again, or forgets it.
  if (message.kind == ActiveKind::request) {
    if (!OpenRequests::is_possible(message.name)) return Status::invalid;
    port->active->requests.open(message.name, message.to);
  }
  if (is_near(message.to.engine) && send_active_near(*port, message, conversation)) [[likely]]
    return Status::ok;
  if (message.memory.size() > link::kPiecesMax || message.length > base::scatter_size(message.memory) ||
      message.head > std::min<std::uint64_t>(kActiveHeadMax, message.length) || message.head % 8 != 0)
    return Status::invalid;
  now_ = now;
  const wire::Envelope envelope = envelope_of(message, port->number, port->active->secret());
  const bool is_referenced = message.length > options_.get(Option::embedded_max);
  if (is_here(message.to.engine)) {
    send_active_local(envelope, message.memory, message.length);
    if (is_referenced)
      ports_.produce(handle.slot, {.cookie = message.cookie, .length = message.length, .source = message.to});
    ++counters_.active_sent;
    return Status::ok;
  }
  if (!transports_) return Status::unreachable;
  const auto peer = transports_->peer_at(message.to.engine, now);
  if (!peer) return peer.error().status;
  if (conversation != nullptr) *conversation = {way_of(*peer), peer_losses_.count()};
  std::uint32_t slot = kNone;
  if (is_referenced) {
    slot = make_operation(OperationKind::send, handle, message.cookie);
    if (slot == kNone) return Status::no_memory;
    Operation& operation = operations_[slot];
    operation.memory = message.memory;
    operation.length = message.length;
    operation.other = message.to;
    operation.peer = *peer;
    operation.is_link_pending = true;
  }
  const Status status = transports_->submit(*peer,
                                            {.envelope = envelope,
                                             .pieces = message.memory,
                                             .size = message.length,
                                             .cookie = is_referenced ? name_of(slot) : 0,
                                             .wants_outcome = is_referenced},
                                            now);
  if (status != Status::ok) {
    if (is_referenced) release_operation(slot);
    return status;
  }
  ++counters_.active_sent;
  transports_->flight().submitted(*peer, message.length, now);
  transports_->send_eagerly(*peer, now);
  return Status::ok;
}

void Engine::send_active_local(const wire::Envelope& envelope, std::span<const iovec> memory, std::uint64_t length) {
  Arrival* arrival = nullptr;
  const RemotePort source{address_, envelope.source_port};
  const std::uint32_t port = accept_active(envelope, source, nullptr, length, arrival);
  if (port == kNone || arrival == nullptr) return;
  const iovec to[2] = {{arrival->head_bytes, arrival->head}, {arrival->data, arrival->data_length}};
  base::scatter_copy(to, 0, memory, arrival->head + arrival->data_length);
  ports_[port].active->queue(*arrival, true);
  ports_.touch(port);
}

void Engine::answer_active(const RemotePort& to, const wire::Envelope& envelope, Status status) {
  const ActiveKind kind = kind_of(envelope.operation);
  ++counters_.active_refused;
  // What was refused on its way back is not answered again.
  if (kind != ActiveKind::request && kind != ActiveKind::reply) return;
  const bool was_request = kind == ActiveKind::request;
  wire::Envelope back{.operation = was_request ? wire::Operation::active_returned : wire::Operation::active_rejected,
                      .status = std::to_underlying(status),
                      .flags = envelope.flags,
                      .source_port = envelope.target_port,
                      .target_port = envelope.source_port,
                      .key = envelope.a,
                      .cookie = envelope.cookie};
  if (is_here(to.engine)) {
    send_active_local(back, {}, 0);
  } else if (const auto peer = transports_->peer_at(to.engine, now_)) {
    answer(*peer, back, 0, now_);
  }
}

// Receiving ----------------------------------------------------------------------------------------------------------

// Chooses where a message goes: its port, with an arrival to fill. No arrival: it was refused, and answered.
// `peer`: null if it is of this engine.
std::uint32_t Engine::accept_active(const wire::Envelope& envelope, const RemotePort& source,
                                    const link::PeerHandle* peer, std::uint64_t size, Arrival*& arrival) {
  const ActiveKind kind = kind_of(envelope.operation);
  const std::uint32_t slot = ports_.find_number(envelope.target_port);
  if (slot == Ports::kNone || !ports_[slot].active) {
    answer_active(source, envelope, Status::stale);
    return kNone;
  }
  ActivePort& port = *ports_[slot].active;
  const auto [head, is_placed] = shape_of(kind, envelope.status);
  const bool is_back = active_wire::is_back(kind);
  const bool knows_secret = is_back ? envelope.key == port.secret() : port.admits(envelope.key);
  if (!knows_secret && peer != nullptr && (is_back || port.rule.kind == AccessRule::Kind::equal)) {
    transports_->offences().note_wrong_secret(*peer, is_back ? transport::Secret::answer : transport::Secret::tag,
                                              now_);
  }
  if (is_back && (!knows_secret || (is_notice(kind) && size != 0))) {
    ++counters_.active_refused;
    return kNone;  // not an answer to us
  }
  // A rejection answers a reply, of which nothing is kept.
  if (is_back && kind != ActiveKind::rejected && !port.requests.is_open(envelope.cookie, source)) {
    ++counters_.dropped_late_answer;
    return kNone;
  }
  Status status = knows_secret ? Status::ok : Status::not_permitted;
  if (status == Status::ok && (head > kActiveHeadMax || head > size)) status = Status::message_size;
  const std::uint64_t data = size - std::min<std::uint64_t>(head, size);
  if (status == Status::ok && is_placed) status = port.check_place(envelope.offset, data);
  if (status != Status::ok && !is_back) {
    answer_active(source, envelope, status);
    return kNone;
  }
  if (status != Status::ok) ++counters_.active_refused;
  const bool is_buffered = !is_placed && !port.is_packed(size) && status == Status::ok;
  arrival = port.acquire(is_buffered ? size : 0, is_back);
  if (arrival == nullptr && is_back) {
    // Its bytes are lost for lack of memory, but not the news.
    arrival = port.acquire(0, true);
    status = Status::no_memory;
  }
  if (arrival == nullptr) {
    answer_active(source, envelope, Status::again);
    return kNone;
  }
  if (kind == ActiveKind::reply || kind == ActiveKind::returned) port.requests.close(envelope.cookie);
  const bool has_bytes = status == Status::ok;
  arrival->kind = kind;
  arrival->status = has_bytes && is_notice(kind) ? status_of(envelope.status) : status;
  arrival->is_placed = is_placed;
  arrival->word = envelope.flags;
  arrival->head = has_bytes ? head : std::uint16_t{0};
  arrival->reply_access = envelope.a;
  arrival->source = source;
  arrival->access = envelope.key;
  arrival->name = envelope.cookie;
  arrival->offset = envelope.offset;
  arrival->head_bytes = is_buffered ? arrival->buffer : arrival->packed.data();
  arrival->data_length = has_bytes ? data : 0;
  arrival->data = is_placed ? port.segment.at(envelope.offset) : arrival->head_bytes + arrival->head;
  ++counters_.active_received;
  return slot;
}

void Engine::deliver_active(const link::Delivery& delivery) {
  Arrival* arrival = nullptr;
  const RemotePort source{transports_->address(delivery.peer), delivery.envelope.source_port};
  const std::uint32_t slot = accept_active(delivery.envelope, source, &delivery.peer, delivery.size, arrival);
  if (slot == kNone || arrival == nullptr) return;  // later chunks have no target and are thrown away
  ActivePort& port = *ports_[slot].active;
  const bool has_bytes = arrival->head + arrival->data_length == delivery.size;
  if (delivery.reassembly == link::Delivery::kWhole) [[likely]] {
    if (has_bytes) place_active(port, *arrival, 0, delivery.bytes);
    port.queue(*arrival, port.is_packed(delivery.size) || !has_bytes);
    if (arrival->state.load(std::memory_order_relaxed) == queue::TaskLink::State::filling) port.complete(*arrival);
    ports_.touch(slot);
    return;
  }
  const std::uint32_t placement = has_bytes && placements_.used() < options_.get(Option::operations_max)
                                      ? placements_.acquire()
                                      : base::Slab<Placement>::kNone;
  if (placement == base::Slab<Placement>::kNone) {
    if (arrival->status == Status::ok) arrival->status = Status::no_memory;
    arrival->head = 0;
    arrival->data_length = 0;
    port.queue(*arrival, true);
    ports_.touch(slot);
    return;
  }
  placements_[placement].active_port = slot;
  placements_[placement].arrival = arrival;
  placements_[placement].size = delivery.size;
  port.queue(*arrival, false);
  transports_->set_target(delivery.peer, delivery.reassembly, pack_name(placement, placements_.generation(placement)));
  place_active_chunk(delivery, placement);
}

void Engine::place_active_chunk(const link::Delivery& delivery, std::uint32_t slot) {
  Placement& placement = placements_[slot];
  // Without an arrival the port was closed meanwhile.
  if (placement.arrival != nullptr) {
    place_active(*ports_[placement.active_port].active, *placement.arrival, delivery.offset, delivery.bytes);
  }
  if (delivery.is_last) end_active_placement(slot, Status::ok);
}

void Engine::end_active_placement(std::uint32_t slot, Status status) {
  const Placement placement = placements_[slot];
  placements_.release(slot);
  if (placement.arrival == nullptr) return;
  if (status != Status::ok) placement.arrival->status = status;
  ports_[placement.active_port].active->complete(*placement.arrival);
  ports_.touch(placement.active_port);
}

// The head goes to the arrival, data to where it belongs. The segment may have changed since the first chunk.
void Engine::place_active(ActivePort& port, Arrival& arrival, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset < arrival.head) {
    const auto head = bytes.first(std::min<std::uint64_t>(bytes.size(), arrival.head - offset));
    std::memcpy(arrival.head_bytes + offset, head.data(), head.size());
    bytes = bytes.subspan(head.size());
    offset = arrival.head;
  }
  if (bytes.empty()) return;
  if (arrival.is_placed) {
    const Status status = port.check_place(arrival.offset, arrival.data_length);
    if (status != Status::ok || arrival.data != port.segment.at(arrival.offset)) {
      arrival.status = status == Status::ok ? Status::invalid : status;
      return;
    }
  }
  std::memcpy(arrival.data + (offset - arrival.head), bytes.data(), bytes.size());
}

// Also one that has begun to come.
void Engine::forget_request(PortHandle handle, std::uint64_t name) {
  Port* port = ports_.find(handle);
  if (port == nullptr || !port->active) return;
  port->active->requests.close(name);
  placements_.for_each([&](std::uint32_t, Placement& placement) {
    Arrival* const arrival = placement.arrival;
    if (placement.active_port != handle.slot || arrival == nullptr) return;
    if (arrival->kind != ActiveKind::reply || arrival->name != name) return;
    placement.arrival = nullptr;
    arrival->status = Status::timed_out;
    port->active->complete(*arrival);
    ports_.touch(handle.slot);
  });
}

// The port is going: who asked is told that nobody will answer, also of what is half-way into it.
void Engine::refuse_active_arrivals(std::uint32_t port_slot) {
  const Port& port = ports_[port_slot];
  const auto refuse = [&](const Arrival& arrival) {
    if (arrival.kind != ActiveKind::request || arrival.status != Status::ok) return;
    answer_active(arrival.source,
                  {.operation = wire::Operation::active_request,
                   .flags = arrival.word,
                   .source_port = arrival.source.port,
                   .target_port = port.number,
                   .cookie = arrival.name,
                   .a = arrival.reply_access},
                  Status::stale);
  };
  while (const Arrival* arrival = port.active->next()) refuse(*arrival);
  placements_.for_each([&](std::uint32_t, Placement& placement) {
    if (placement.active_port != port_slot || placement.arrival == nullptr) return;
    refuse(*placement.arrival);
    placement.arrival = nullptr;
  });
}

void Engine::ask_peer(const base::SocketAddress& address, base::Instant now) {
  const auto peer = transports_ ? transports_->link().find(address) : std::nullopt;
  if (!peer) return;
  const link::PeerFacts facts = transports_->link().facts(*peer);
  if (!facts.is_connected || facts.segments_in_flight != 0 || facts.messages_queued != 0 ||
      now - facts.last_heard < ask_after())
    return;
  // If the link has no room for it there is traffic enough.
  transports_->submit(*peer, {.envelope = {.operation = wire::Operation::done}, .pieces = {}, .wants_outcome = false},
                      now);
}

}  // namespace fairlead::engine
