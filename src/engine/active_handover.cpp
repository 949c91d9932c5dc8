#include "engine/active_handover.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/saved.hpp"

namespace fairlead::engine {
namespace {

bool is_sound(const ArrivalState& saved) {
  const std::uint64_t carried = saved.bytes.size();
  return saved.kind <= ActiveKind::rejected && saved.status <= Status::system && saved.head <= kActiveHeadMax &&
         saved.head % 8 == 0 && saved.head <= carried &&
         carried - saved.head == (saved.is_placed ? 0 : saved.data_length);
}

/// Returns an arrival of the port with the saved content; null if it contradicts itself or does not fit.
Arrival* arrival_of(ActivePort& port, const ArrivalState& saved) {
  if (!is_sound(saved)) return nullptr;
  const bool is_buffered = !saved.is_placed && !port.is_packed(saved.bytes.size());
  Arrival* const arrival = port.acquire(is_buffered ? saved.bytes.size() : 0, true);
  if (arrival == nullptr) return nullptr;
  arrival->kind = saved.kind;
  arrival->status = saved.status;
  arrival->is_placed = saved.is_placed;
  arrival->word = saved.word;
  arrival->head = saved.head;
  arrival->reply_access = saved.reply_access;
  arrival->source = saved.source;
  arrival->access = saved.access;
  arrival->name = saved.name;
  arrival->offset = saved.offset;
  arrival->head_bytes = is_buffered ? arrival->buffer : arrival->packed.data();
  arrival->data = saved.is_placed ? nullptr : arrival->head_bytes + saved.head;
  arrival->data_length = saved.data_length;
  std::ranges::copy(saved.bytes, arrival->head_bytes);
  return arrival;
}

}  // namespace

ArrivalState state_of(const Arrival& arrival) {
  const std::uint64_t carried = arrival.head + (arrival.is_placed ? 0 : arrival.data_length);
  return {.kind = arrival.kind,
          .status = arrival.status,
          .is_placed = arrival.is_placed,
          .word = arrival.word,
          .head = arrival.head,
          .reply_access = arrival.reply_access,
          .source = arrival.source,
          .access = arrival.access,
          .name = arrival.name,
          .offset = arrival.offset,
          .data_length = arrival.data_length,
          .bytes = {arrival.head_bytes, arrival.head_bytes + carried}};
}

// Saving -------------------------------------------------------------------------------------------------------------

ActiveState ActiveHandover::save() {
  ActiveState saved{.ports = {},
                    .filling_names = active_.fillings_.names(),
                    .fillings = {},
                    .answers = {},
                    .losses_counted = active_.losses_.count(),
                    .losses = active_.losses_.save(),
                    .left = active_.left_.save()};
  active_.ports_.for_each([&](std::uint32_t slot, const Port& port) {
    if (!port.active) return;
    saved.ports.push_back({.slot = slot,
                           .secret = port.active->secret(),
                           .bounds = port.active->bounds(),
                           .rule = port.active->rule,
                           .gone = port.active->gone,
                           .requests = port.active->requests.save()});
  });
  active_.fillings_.for_each([&](std::uint32_t slot, const ActiveMessages::Filling& filling) {
    FillingState& state = saved.fillings.emplace_back(FillingState{.slot = slot, .port = filling.port, .arrival = {}});
    if (filling.arrival == nullptr) return;
    state.arrival = state_of(*filling.arrival);
    ActivePort::Pieces pieces;
    if (const auto permit = active_.ports_[filling.port].active->permit(*filling.arrival, pieces); !permit)
      state.arrival->status = permit.error();  // its segment is another one by now
  });
  active_.answers_.for_each([&](link::PeerHandle peer, const wire::Envelope& envelope) {
    saved.answers.push_back({.peer = peer, .envelope = envelope});
  });
  return saved;
}

// Restoring ----------------------------------------------------------------------------------------------------------

Result<> ActiveHandover::restore(const ActiveState& saved, std::uint32_t peers_max, base::Instant now) {
  for (const ActivePortState& port : saved.ports)
    if (!restore(port)) return base::cannot_restore("a port of active messages contradicts itself");
  if (!active_.fillings_.restore(saved.filling_names) || active_.fillings_.used() != saved.fillings.size())
    return base::cannot_restore("its active messages on their way do not fit in the table");
  for (const FillingState& filling : saved.fillings)
    if (!restore(filling)) return base::cannot_restore("an active message on its way contradicts itself");
  for (const ActiveAnswerState& answer : saved.answers) {
    if (answer.peer.slot >= peers_max) return base::cannot_restore("a refusal is for a peer that there is not");
    if (!active_.answers_.add(answer.peer, answer.envelope, now).is_taken)
      return base::cannot_restore("it has more refusals than may wait");
  }
  if (!active_.losses_.restore(saved.losses_counted, saved.losses))
    return base::cannot_restore("its losses are miscounted");
  for (const LeftPorts::Port& port : saved.left) {
    if (port.why > Status::system) return base::cannot_restore("a port was left for no known reason");
    active_.left_.add(port.number, port.why);
  }
  return {};
}

bool ActiveHandover::restore(const ActivePortState& saved) {
  Port* const port = active_.ports_.find_slot(saved.slot);
  if (port == nullptr || port->active || saved.rule.kind > AccessRule::Kind::all || saved.gone > Status::system)
    return false;
  const ActivePort::Bounds& most = active_.bounds_.port;
  port->active = std::make_unique<ActivePort>(
      ActivePort::Bounds{.arrivals_max = std::min(saved.bounds.arrivals_max, most.arrivals_max),
                         .memory_max = std::min(saved.bounds.memory_max, most.memory_max),
                         .packed_max = std::min(saved.bounds.packed_max, most.packed_max)},
      saved.secret);
  port->active->rule = saved.rule;
  port->active->gone = saved.gone;
  return port->active->requests.restore(saved.requests);
}

bool ActiveHandover::restore(const FillingState& saved) {
  auto& fillings = active_.fillings_;
  const bool is_there = saved.slot < fillings.size() && fillings.find(saved.slot, fillings.generation(saved.slot));
  if (!is_there || fillings[saved.slot].arrival != nullptr) return false;
  fillings[saved.slot].port = saved.port;
  if (!saved.arrival) return true;
  const Port* const port = active_.ports_.find_slot(saved.port);
  if (port == nullptr || !port->active) return false;
  Arrival* const arrival = arrival_of(*port->active, *saved.arrival);
  if (arrival == nullptr) return false;
  fillings[saved.slot].arrival = arrival;
  port->active->queue(*arrival, false);
  return true;
}

bool ActiveHandover::is_arrival(std::uint64_t target, std::uint64_t size) {
  const auto cookie = transport::Cookie::of(target);
  const ActiveMessages::Filling* const filling = active_.fillings_.find(cookie.place, cookie.number);
  if (cookie.client != transport::Client::active || filling == nullptr) return false;
  arriving_.resize(active_.fillings_.size());
  if (arriving_[cookie.place]) return false;
  arriving_[cookie.place] = true;
  return filling->arrival == nullptr || filling->arrival->head + filling->arrival->data_length == size;
}

bool ActiveHandover::give_segment(PortHandle handle, const Segment& segment) {
  ActivePort* const port = find(handle);
  if (port == nullptr) return false;
  port->segment = segment;
  active_.fillings_.for_each([&](std::uint32_t, const ActiveMessages::Filling& filling) {
    Arrival* const arrival = filling.arrival;
    if (filling.port != handle.slot || arrival == nullptr || !arrival->is_placed || arrival->status != Status::ok)
      return;
    arrival->data = segment.at(arrival->offset);
  });
  return true;
}

bool ActiveHandover::give_arrival(PortHandle handle, const ArrivalState& saved) {
  ActivePort* const port = find(handle);
  Arrival* const arrival = port != nullptr ? arrival_of(*port, saved) : nullptr;
  if (arrival == nullptr) return false;
  port->queue(*arrival, true);
  return true;
}

ActivePort* ActiveHandover::find(PortHandle handle) {
  Port* const port = active_.ports_.find(handle);
  return port != nullptr ? port->active.get() : nullptr;
}

}  // namespace fairlead::engine
