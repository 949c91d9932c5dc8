#include "engine/active_messages.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/ensure.hpp"
#include "base/scatter.hpp"
#include "engine/active_wire.hpp"

namespace fairlead::engine {

using namespace active_wire;

static_assert(transport::EngineClient<ActiveMessages>);

namespace {

wire::Envelope envelope_of(const ActiveMessage& message, const Port& port) {
  return {.operation = operation_of(message.kind),
          .status = status_byte(message),
          .flags = message.word,
          .source_port = port.number,
          .target_port = message.to.port,
          .key = access_of(message),
          .cookie = message.name,
          .offset = message.offset,
          .a = shown_secret(message.kind, port.active->secret())};
}

}  // namespace

Status ActiveMessages::activate(PortHandle handle, std::uint64_t secret, const ActivePort::Bounds& bounds) {
  Port* const port = ports_.find(handle);
  if (port == nullptr) return Status::stale;
  if (port->active) return Status::bad_state;
  port->active = std::make_unique<ActivePort>(bounds, secret);
  left_.remove(port->number);
  return Status::ok;
}

/// Refuses requests that are queued at the port, and those that have arrived in part.
void ActiveMessages::close(std::uint32_t port_slot, base::Instant now) {
  const Port& port = ports_[port_slot];
  const Status gone = port.active->gone;
  const Status status = gone != Status::ok ? gone : Status::stale;
  if (status != Status::stale) left_.add(port.number, status);  // a number that is not known is stale
  const auto refuse_arrival = [&](const Arrival& arrival) {
    if (arrival.kind != ActiveKind::request || arrival.status != Status::ok) return;
    refuse(ports_.handle(port_slot), {arrival.source, arrival.name, arrival.reply_access, arrival.word}, status, now);
  };
  while (const Arrival* arrival = port.active->next()) refuse_arrival(*arrival);
  fillings_.for_each([&](std::uint32_t, Filling& filling) {
    if (filling.port != port_slot || filling.arrival == nullptr) return;
    refuse_arrival(*filling.arrival);
    filling.arrival = nullptr;
  });
}

void ActiveMessages::refuse(PortHandle handle, const UnansweredRequest& request, Status status, base::Instant now) {
  const Port* const port = ports_.find(handle);
  if (port == nullptr) return;
  answer(request.source,
         {.operation = wire::Operation::active_request,
          .flags = request.word,
          .source_port = request.source.port,
          .target_port = port->number,
          .cookie = request.name,
          .a = request.reply_access},
         status, now);
}

void ActiveMessages::leave(PortHandle handle, Status why) {
  Port* const port = ports_.find(handle);
  if (port != nullptr && port->active) port->active->gone = why;
}

// Sending ------------------------------------------------------------------------------------------------------------

Status ActiveMessages::begin(Port& port, const ActiveMessage& message) {
  if (message.memory.size() > link::kPiecesMax || message.length > base::scatter_size(message.memory) ||
      message.head > std::min<std::uint64_t>(kActiveHeadMax, message.length) || message.head % 8 != 0)
    return Status::invalid;
  if (message.kind != ActiveKind::request) return Status::ok;
  if (!OpenRequests::is_possible(message.name)) return Status::invalid;
  port.active->requests.open(message.name, message.to);
  return Status::ok;
}

Status ActiveMessages::send(link::PeerHandle peer, const Port& port, const ActiveMessage& message, std::uint64_t cookie,
                            base::Instant now, link::Reference* reference) {
  const Status status = transports_->submit(peer,
                                            {.envelope = envelope_of(message, port),
                                             .pieces = message.memory,
                                             .size = message.length,
                                             .cookie = cookie,
                                             .wants_outcome = cookie != 0},
                                            now, reference);
  if (status != Status::ok) return status;
  ++counters_.sent;
  if (message.kind == ActiveKind::request && shm::Transport::has(peer))
    port.active->requests.carry(message.name, way_of(peer));
  transports_->flight().submitted(peer, 1, message.length, now);
  transports_->send_eagerly(peer, now);
  return Status::ok;
}

void ActiveMessages::send_here(const Port& port, const ActiveMessage& message, base::Instant now) {
  hand_over(envelope_of(message, port), message.memory, message.length, now);
  ++counters_.sent;
}

void ActiveMessages::hand_over(const wire::Envelope& envelope, std::span<const iovec> memory, std::uint64_t length,
                               base::Instant now) {
  Arrival* arrival = nullptr;
  const std::uint32_t port = accept(envelope, address_, nullptr, length, arrival, now);
  if (arrival == nullptr) return;
  const std::array<iovec, 2> to{{{arrival->head_bytes, arrival->head}, {arrival->data, arrival->data_length}}};
  base::scatter_copy(to, 0, memory, arrival->head + arrival->data_length);
  ports_[port].active->queue(*arrival, true);
  ports_.touch(port);
}

/// Tells the sender that its request or reply was refused. A notice of a refusal gets no answer.
void ActiveMessages::answer(const RemotePort& to, const wire::Envelope& envelope, Status status, base::Instant now) {
  const ActiveKind kind = kind_of(envelope.operation);
  ++counters_.refused;
  if (is_notice(kind)) return;
  const bool was_request = kind == ActiveKind::request;
  const wire::Envelope back{
      .operation = was_request ? wire::Operation::active_returned : wire::Operation::active_rejected,
      .status = std::to_underlying(status),
      .flags = envelope.flags,
      .source_port = envelope.target_port,
      .target_port = envelope.source_port,
      .key = envelope.a,
      .cookie = envelope.cookie};
  if (to.engine == address_) return hand_over(back, {}, 0, now);
  link::PeerHandle peer;
  if (transports_->resolve(to.engine, now, peer) != Status::ok) return;
  if (!answers_.has(peer) && submit_answer(peer, back, now) != Status::again) return;
  if (const auto excess = answers_.add(peer, back, now).excess)
    transports_->offences().condemn(*excess, transport::Offence::takes_no_answers);
}

Status ActiveMessages::submit_answer(link::PeerHandle peer, const wire::Envelope& envelope, base::Instant now) {
  return transports_->submit(peer, {.envelope = envelope, .pieces = {}, .wants_outcome = false}, now);
}

// Peers --------------------------------------------------------------------------------------------------------------

void ActiveMessages::ask_peer(const base::SocketAddress& address, base::Instant now) {
  const auto peer = transports_ != nullptr ? transports_->link().find(address) : std::nullopt;
  if (peer) transports_->ask(*peer, bounds_.ask_after, now);
}

void ActiveMessages::end_peer(link::PeerHandle peer, Status status, base::Instant, bool has_left) {
  losses_.add(transports_->address(peer), way_of(peer), status, has_left);
  drop_answers(peer);
}

void ActiveMessages::drop_answers(link::PeerHandle peer) {
  answers_.drop(peer, [&](const wire::Envelope&) { ++counters_.dropped_answers; });
}

bool ActiveMessages::is_using(link::PeerHandle peer) {
  bool is_used = answers_.has(peer);
  ports_.for_each([&](std::uint32_t, const Port& port) {
    is_used = is_used || (port.active && port.active->requests.is_any_at(way_of(peer)));
  });
  return is_used;
}

bool ActiveMessages::progress(base::Instant now) {
  constexpr std::size_t kTriesInPass = 256;
  if (answers_.is_empty()) [[likely]]
    return false;
  const std::size_t before = answers_.size();
  answers_.retry(kTriesInPass, now, [&](link::PeerHandle peer, const wire::Envelope& envelope) {
    return submit_answer(peer, envelope, now) != Status::again;
  });
  return answers_.size() != before;
}

void ActiveMessages::check() {
  fillings_.for_each([&](std::uint32_t slot, const Filling& filling) {
    ENSURE(filling.arrival == nullptr || ports_[filling.port].active, "message {} arrives at a port that is closed",
           slot);
  });
}

}  // namespace fairlead::engine
