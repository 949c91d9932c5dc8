// Requests that come in chunks, and those that come before their turn. A chunk of the current request is placed at
// once, in whatever order; one of a later request is copied and waits. What finds no room is thrown away, and the
// requester is asked to come back with it when its turn has come: the link has acknowledged it and will not.

#include <algorithm>
#include <cstring>
#include <utility>

#include "qp/flows.hpp"

namespace fairlead::qp {

using verbs::QpType;

std::uint32_t Flows::add_arrival(Flow& flow, const link::Delivery& delivery) {
  const std::uint32_t slot = arrivals_.acquire(Waiting::Kind::request);
  if (slot == kNone) return kNone;
  Waiting& arrival = arrivals_[slot];
  arrival.flow = flow.index;
  arrival.sequence = static_cast<std::uint32_t>(delivery.envelope.key >> 32);
  arrival.envelope = delivery.envelope;
  arrival.size = delivery.size;
  arrival.is_linked = delivery.reassembly != link::Delivery::kWhole && !delivery.is_last;
  if (arrival.is_linked) transports_->set_target(delivery.peer, delivery.reassembly, target_of(slot));
  return slot;
}

/// Chunks still to come are thrown away.
void Flows::drop_arrival(std::uint32_t slot) {
  Waiting& arrival = arrivals_[slot];
  held_bytes_ -= arrival.bytes_held;
  arrival.bytes_held = 0;
  arrival.held.clear();
  arrival.flow = kNone;
  if (!arrival.is_linked) arrivals_.release(slot);
}

void Flows::unlink(Flow& flow, std::uint32_t slot) {
  Waiting& arrival = arrivals_[slot];
  (arrival.previous == kNone ? flow.first_arrival : arrivals_[arrival.previous].next) = arrival.next;
  (arrival.next == kNone ? flow.last_arrival : arrivals_[arrival.next].previous) = arrival.previous;
  arrival.next = arrival.previous = kNone;
  --flow.arrivals;
  flow.held_bytes -= arrival.bytes_held;
}

void Flows::drop_arrivals(Flow& flow) {
  while (flow.first_arrival != kNone) {
    const std::uint32_t slot = flow.first_arrival;
    unlink(flow, slot);
    drop_arrival(slot);
  }
  if (flow.current.arrival != kNone) drop_arrival(std::exchange(flow.current.arrival, kNone));
  flow.has_dropped = false;
}

bool Flows::can_hold(const Flow& flow, std::size_t bytes) const {
  const std::uint64_t most = bounds_.early_max;
  return held_bytes_ + bytes <= most && flow.held_bytes + bytes <= most / 4;
}

// Before its turn ----------------------------------------------------------------------------------------------------

void Flows::hold(Flow& flow, const link::Delivery& delivery, base::Instant now) {
  const auto sequence = static_cast<std::uint32_t>(delivery.envelope.key >> 32);
  // Mostly it comes behind all that wait.
  std::uint32_t before = flow.last_arrival;
  while (before != kNone && static_cast<std::int32_t>(arrivals_[before].sequence - sequence) > 0) {
    before = arrivals_[before].previous;
  }
  if (before != kNone && arrivals_[before].sequence == sequence) {
    ++counters_.duplicates;
    return;
  }
  // No flow takes more than a quarter of what is left, so something is left for each.
  const std::uint32_t most = std::min(kArrivalsMaxOfFlow, arrivals_.left(Waiting::Kind::request) / 4);
  const bool has_room = flow.arrivals < most && can_hold(flow, delivery.bytes.size());
  const std::uint32_t slot = has_room ? add_arrival(flow, delivery) : kNone;
  if (slot == kNone) return note_dropped(flow, sequence);
  Waiting& arrival = arrivals_[slot];
  arrival.previous = before;
  arrival.next = before == kNone ? flow.first_arrival : arrivals_[before].next;
  (arrival.next == kNone ? flow.last_arrival : arrivals_[arrival.next].previous) = slot;
  (before == kNone ? flow.first_arrival : arrivals_[before].next) = slot;
  ++flow.arrivals;
  ++counters_.held;
  keep(flow, arrival, delivery.offset, delivery.bytes);
  if (flow.plan.type == QpType::uc && flow.gap_due == base::kNever) {
    flow.gap_due = now + kGapPatience;
    set_timer(flow, flow.gap_due);
  }
}

void Flows::keep(Flow& flow, Waiting& arrival, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Waiting::Piece piece{offset, bytes.size(), std::make_unique_for_overwrite<std::byte[]>(bytes.size())};
  std::memcpy(piece.bytes.get(), bytes.data(), bytes.size());
  arrival.held.push_back(std::move(piece));
  arrival.bytes_held += bytes.size();
  flow.held_bytes += bytes.size();
  held_bytes_ += bytes.size();
  counters_.held_bytes_most = std::max(counters_.held_bytes_most, held_bytes_);
}

void Flows::note_dropped(Flow& flow, std::uint32_t sequence) {
  ++counters_.refused_no_room;
  if (!flow.has_dropped || static_cast<std::int32_t>(sequence - flow.dropped_first) < 0) {
    flow.dropped_first = sequence;
  }
  flow.has_dropped = true;
}

/// Executes what has waited for its turn.
void Flows::drain(Flow& flow, base::Instant now) {
  while (flow.first_arrival != kNone && !flow.current.is_active && flow.can_receive()) {
    const std::uint32_t slot = flow.first_arrival;
    Waiting& arrival = arrivals_[slot];
    const auto distance = flow.turn.distance(arrival.sequence);
    if (distance > 0) break;
    unlink(flow, slot);
    if (distance < 0) {  // came again and was executed meanwhile
      drop_arrival(slot);
      continue;
    }
    // From here on it is ours alone: whatever ends the flow does not find it.
    const std::vector<Waiting::Piece> held = std::move(arrival.held);
    const wire::Envelope envelope = arrival.envelope;
    const bool is_linked = arrival.is_linked;
    arrival.held.clear();
    Answer answer;
    bool is_well = begin(flow, envelope, arrival.size, answer);
    if (is_well && is_linked) flow.current.arrival = slot;
    for (const Waiting::Piece& piece : held) {
      is_well = is_well && put(flow, piece.offset, {piece.bytes.get(), piece.size}, answer);
    }
    if (is_well && is_linked) {
      held_bytes_ -= std::exchange(arrival.bytes_held, 0);
      break;
    }
    if (is_well) is_well = finish(flow, answer);
    if (arrival.flow != kNone) drop_arrival(slot);
    conclude(flow, envelope, answer, now);
    if (!is_well && flow.plan.type == QpType::rc) break;
  }
  if (flow.has_dropped && !flow.current.is_active && flow.can_receive()) {
    const auto distance = flow.turn.distance(flow.dropped_first);
    if (distance <= 0) flow.has_dropped = false;
    if (distance == 0 && flow.plan.type == QpType::rc) {
      send_answer(flow, flow.turn.next(), {.verdict = Verdict::go_back}, 0, now);
    }
  }
  if (flow.first_arrival == kNone) flow.gap_due = base::kNever;
}

// In chunks ----------------------------------------------------------------------------------------------------------

void Flows::start_chunked(Flow& flow, const link::Delivery& delivery, base::Instant now) {
  Answer answer;
  const std::uint32_t slot = add_arrival(flow, delivery);
  if (slot == kNone) {
    ++counters_.refused_no_room;
    if (flow.plan.type == QpType::rc) {
      send_answer(flow, flow.turn.next(), {.verdict = Verdict::go_back}, 0, now);
    }
    return;
  }
  const wire::Envelope envelope = delivery.envelope;
  if (!begin(flow, envelope, delivery.size, answer)) {
    drop_arrival(slot);
    conclude(flow, envelope, answer, now);
    return drain(flow, now);
  }
  flow.current.arrival = slot;
  put_chunk(flow, delivery.offset, delivery.bytes, now);
}

/// Of the current request.
void Flows::put_chunk(Flow& flow, std::uint64_t offset, std::span<const std::byte> bytes, base::Instant now) {
  const std::uint32_t slot = flow.current.arrival;
  const wire::Envelope envelope = flow.current.envelope;
  Answer answer;
  bool is_well = put(flow, offset, bytes, answer);
  if (is_well && flow.current.left != 0) return;
  if (is_well) {
    flow.current.arrival = kNone;
    arrivals_[slot].is_linked = false;
    finish(flow, answer);
  }
  if (arrivals_[slot].flow != kNone) drop_arrival(slot);
  conclude(flow, envelope, answer, now);
  drain(flow, now);
}

void Flows::on_chunk(const link::Delivery& delivery, base::Instant now) {
  const auto slot = static_cast<std::uint32_t>(delivery.target & ~kOurs);
  Waiting* arrival = arrivals_.find(slot, static_cast<std::uint32_t>(delivery.target >> 32));
  if (arrival == nullptr) return;
  if (arrival->kind == Waiting::Kind::answer) return on_answer_chunk(slot, delivery, now);
  if (arrival->kind == Waiting::Kind::datagram) return on_datagram_chunk(slot, delivery);
  if (delivery.is_last) arrival->is_linked = false;
  if (arrival->flow == kNone) {
    if (delivery.is_last) arrivals_.release(slot);
    return;
  }
  Flow& flow = *flows_[arrival->flow];
  if (flow.current.arrival == slot) return put_chunk(flow, delivery.offset, delivery.bytes, now);
  if (!can_hold(flow, delivery.bytes.size())) {
    note_dropped(flow, arrival->sequence);
    unlink(flow, slot);
    return drop_arrival(slot);
  }
  keep(flow, *arrival, delivery.offset, delivery.bytes);
}

void Flows::end_arrival(std::uint64_t target, Status) {
  const auto slot = static_cast<std::uint32_t>(target & ~kOurs);
  Waiting* arrival = arrivals_.find(slot, static_cast<std::uint32_t>(target >> 32));
  if (arrival == nullptr) return;
  arrival->is_linked = false;
  if (arrival->kind == Waiting::Kind::datagram) return drop_datagram(slot);
  Flow* flow = arrival->kind == Waiting::Kind::answer || arrival->flow == kNone ? nullptr : flows_[arrival->flow].get();
  if (flow == nullptr) {
    arrivals_.release(slot);
    return;
  }
  if (flow->current.arrival == slot) {
    // The receive that it took stays taken, for the same request if it comes again.
    flow->current.arrival = kNone;
    flow->current.is_active = false;
  } else {
    unlink(*flow, slot);
  }
  drop_arrival(slot);
}

}  // namespace fairlead::qp
