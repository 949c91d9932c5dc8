// Receives messages of peers for active ports. Everything in a delivery comes from the network.

#include <algorithm>
#include <utility>

#include "engine/active_messages.hpp"
#include "engine/active_wire.hpp"
#include "engine/operation.hpp"

namespace fairlead::engine {

using namespace active_wire;

namespace {

Status status_of(std::uint8_t byte) {
  return byte <= std::to_underlying(Status::system) ? static_cast<Status>(byte) : Status::system;
}

/// Places a chunk. The segment may have changed since the first one.
void place(const ActivePort& port, Arrival& arrival, std::uint64_t offset, std::span<const std::byte> bytes) {
  ActivePort::Pieces pieces;
  const auto permit = port.permit(arrival, pieces);
  if (permit) return permit->write(offset, bytes);
  arrival.status = permit.error();
}

void place_whole(const ActivePort& port, Arrival& arrival, std::span<const std::byte> bytes) {
  if (arrival.is_placed) [[unlikely]]
    return place(port, arrival, 0, bytes);
  ActivePort::Pieces pieces;
  port.permit(arrival, pieces)->write(0, bytes);
}

}  // namespace

/// Decides whether a message is accepted. Returns `bad_state` for an answer to no message of ours; it gets no answer.
[[gnu::always_inline]] inline Status ActiveMessages::judge(ActivePort& port, const wire::Envelope& envelope,
                                                           const base::SocketAddress& from,
                                                           const link::PeerHandle* peer, std::uint64_t size,
                                                           base::Instant now) {
  const ActiveKind kind = kind_of(envelope.operation);
  const bool is_answer = is_back(kind);
  const bool knows_secret = is_answer ? envelope.key == port.secret() : port.admits(envelope.key);
  if (!knows_secret && peer != nullptr && (is_answer || port.rule.kind == AccessRule::Kind::equal)) [[unlikely]] {
    transports_->offences().note_wrong_secret(*peer, is_answer ? transport::Secret::answer : transport::Secret::tag,
                                              now);
  }
  if (is_answer && (!knows_secret || (is_notice(kind) && size != 0))) [[unlikely]] {
    ++counters_.refused;
    return Status::bad_state;
  }
  // A rejection answers a reply, of which no state is kept.
  if (is_answer && kind != ActiveKind::rejected && !port.requests.is_open(envelope.cookie, from, envelope.source_port))
      [[unlikely]] {
    ++counters_.late_answers;
    return Status::bad_state;
  }
  if (!knows_secret) return Status::not_permitted;
  const auto [head, is_placed] = shape_of(kind, envelope.status);
  if (head > kActiveHeadMax || head > size) return Status::message_size;
  return is_placed ? port.check_place(envelope.offset, size - head) : Status::ok;
}

/// Selects the port of a message and an arrival to fill. Sets no arrival if the message was refused and answered.
/// `peer` is null for a message of this engine.
std::uint32_t ActiveMessages::accept(const wire::Envelope& envelope, const base::SocketAddress& from,
                                     const link::PeerHandle* peer, std::uint64_t size, Arrival*& arrival,
                                     base::Instant now) {
  const ActiveKind kind = kind_of(envelope.operation);
  const std::uint32_t slot = ports_.find_number(envelope.target_port);
  if (slot == kNone || !ports_[slot].active) [[unlikely]] {
    const Status why = slot == kNone ? left_.why(envelope.target_port) : Status::ok;
    if (why != Status::ok && kind != ActiveKind::request) {  // it needs no answer to its request any more
      ++counters_.late_answers;
      return kNone;
    }
    answer({from, envelope.source_port}, envelope, why != Status::ok ? why : Status::stale, now);
    return kNone;
  }
  ActivePort& port = *ports_[slot].active;
  Status status = judge(port, envelope, from, peer, size, now);
  if (status == Status::bad_state) [[unlikely]]
    return kNone;
  const bool is_answer = is_back(kind);
  if (port.gone != Status::ok && !is_answer) [[unlikely]]
    status = port.gone;
  if (status != Status::ok && !is_answer) [[unlikely]] {
    answer({from, envelope.source_port}, envelope, status, now);
    return kNone;
  }
  if (status != Status::ok) ++counters_.refused;
  const auto [head, is_placed] = shape_of(kind, envelope.status);
  const bool is_buffered = !is_placed && !port.is_packed(size) && status == Status::ok;
  arrival = port.acquire(is_buffered ? size : 0, is_answer);
  if (arrival == nullptr && is_answer) [[unlikely]] {
    // Memory is short: deliver the reply without its bytes.
    arrival = port.acquire(0, true);
    status = Status::no_memory;
  }
  if (arrival == nullptr) [[unlikely]] {
    answer({from, envelope.source_port}, envelope, Status::again, now);
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
  arrival->source.engine = from;
  arrival->source.port = envelope.source_port;
  arrival->access = envelope.key;
  arrival->name = envelope.cookie;
  arrival->offset = envelope.offset;
  arrival->head_bytes = is_buffered ? arrival->buffer : arrival->packed.data();
  arrival->data_length = has_bytes ? size - std::min<std::uint64_t>(head, size) : 0;
  arrival->data = is_placed ? port.segment.at(envelope.offset) : arrival->head_bytes + arrival->head;
  ++counters_.received;
  return slot;
}

void ActiveMessages::deliver(const link::Delivery& delivery, base::Instant now) {
  if (!delivery.is_first) return place_chunk(delivery, transport::Cookie::of(delivery.target).place);
  Arrival* arrival = nullptr;
  const std::uint32_t slot =
      accept(delivery.envelope, transports_->address(delivery.peer), &delivery.peer, delivery.size, arrival, now);
  if (arrival == nullptr) [[unlikely]]
    return;  // later chunks have no target and are discarded
  if (delivery.reassembly != link::Delivery::kWhole) [[unlikely]]
    return fill_in_chunks(delivery, slot, *arrival);
  ActivePort& port = *ports_[slot].active;
  const bool has_bytes = arrival->head + arrival->data_length == delivery.size;
  if (has_bytes) place_whole(port, *arrival, delivery.bytes);
  if (!delivery.is_good()) [[unlikely]]
    arrival->status = Status::refused;  // the sender took it back while it was read
  port.queue(*arrival, true);
  ports_.touch(slot);
}

void ActiveMessages::fill_in_chunks(const link::Delivery& delivery, std::uint32_t slot, Arrival& arrival) {
  ActivePort& port = *ports_[slot].active;
  const bool has_bytes = arrival.head + arrival.data_length == delivery.size;
  const std::uint32_t filling = has_bytes ? fillings_.acquire() : kNone;
  if (filling == kNone) {
    if (arrival.status == Status::ok) arrival.status = Status::no_memory;
    arrival.head = 0;
    arrival.data_length = 0;
    port.queue(arrival, true);
    ports_.touch(slot);
    return;
  }
  fillings_[filling] = {slot, &arrival};
  port.queue(arrival, false);
  const transport::Cookie cookie{
      .client = transport::Client::active, .place = filling, .number = fillings_.generation(filling)};
  transports_->set_target(delivery.peer, delivery.reassembly, cookie.word());
  place_chunk(delivery, filling);
}

void ActiveMessages::place_chunk(const link::Delivery& delivery, std::uint32_t slot) {
  const Filling& filling = fillings_[slot];
  if (filling.arrival != nullptr)
    place(*ports_[filling.port].active, *filling.arrival, delivery.offset, delivery.bytes);
  if (delivery.is_last) end_filling(slot, Status::ok);
}

void ActiveMessages::end_filling(std::uint32_t slot, Status status) {
  const Filling filling = fillings_[slot];
  fillings_.release(slot);
  if (filling.arrival == nullptr) return;
  if (status != Status::ok) filling.arrival->status = status;
  ports_[filling.port].active->complete(*filling.arrival);
  ports_.touch(filling.port);
}

/// Ends a partly received message whose sender is lost.
void ActiveMessages::end_arrival(std::uint64_t target, Status status) {
  const auto cookie = transport::Cookie::of(target);
  if (fillings_.find(cookie.place, cookie.number) != nullptr) end_filling(cookie.place, status);
}

void ActiveMessages::forget_request(PortHandle handle, std::uint64_t name) {
  Port* const port = ports_.find(handle);
  if (port == nullptr || !port->active) return;
  port->active->requests.close(name);
  fillings_.for_each([&](std::uint32_t, Filling& filling) {
    Arrival* const arrival = filling.arrival;
    if (filling.port != handle.slot || arrival == nullptr) return;
    if (arrival->kind != ActiveKind::reply || arrival->name != name) return;
    filling.arrival = nullptr;
    arrival->status = Status::timed_out;
    port->active->complete(*arrival);
    ports_.touch(handle.slot);
  });
}

}  // namespace fairlead::engine
