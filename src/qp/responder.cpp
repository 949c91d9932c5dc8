#include "qp/responder.hpp"

#include <utility>
#include <vector>

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;

QueuePair* Responder::admit(const link::Delivery& delivery) {
  const wire::Envelope& envelope = delivery.envelope;
  const auto refuse = [&](Cause cause) -> QueuePair* {
    answers_.refuse(delivery, cause);
    return nullptr;
  };
  QueuePair* const pair = pairs_.find_number(wire::decode_pair_port(envelope.target_port).number);
  if (pair == nullptr || pair->is(QpType::ud)) [[unlikely]]
    return refuse(Cause::no_such_queue_pair);
  if (!pair->can_receive()) [[unlikely]]
    return refuse(Cause::queue_pair_not_ready);
  const wire::PairPort source = wire::decode_pair_port(envelope.source_port);
  PairRoute& route = pair->route;
  // The address of a peer does not change, so a handle that matched stays valid.
  const bool is_there =
      (route.has_peer && route.peer == delivery.peer) || route.address == shared_.transports->address(delivery.peer);
  const bool is_connected = is_there && pair->attributes.dest_qp_num == source.number;
  if (!is_connected || !pair->turn.is_possible(wire::decode_request_key(envelope.key).sequence)) [[unlikely]]
    return refuse(Cause::sequence_mismatch);
  if (!has_data(envelope.operation) && delivery.size != 0) [[unlikely]] {
    ++shared_.counters.dropped_malformed;
    return nullptr;
  }
  route.peer = delivery.peer;
  route.has_peer = route.is_proven = true;
  route.incarnation = source.incarnation;
  return pair;
}

void Responder::take(QueuePair& pair, const link::Delivery& delivery) {
  const std::int32_t distance = pair.turn.distance(wire::decode_request_key(delivery.envelope.key).sequence);
  if (distance < 0) [[unlikely]]
    return take_duplicate(pair, delivery);
  if (distance > 0) [[unlikely]]
    return take_early(pair, delivery);
  if (pair.current.is_active) [[unlikely]] {
    ++shared_.counters.duplicates;  // sent again while the first copy is still arriving
    return;
  }
  if (!delivery.is_short()) [[unlikely]]
    return delivery.permission == nullptr ? take_first_chunk(pair, delivery) : take_in_place(pair, delivery);
  take_whole(pair, delivery);
}

void Responder::take_whole(QueuePair& pair, const link::Delivery& delivery) {
  const wire::Envelope& envelope = delivery.envelope;
  if (executor_.execute_plain(pair, envelope, delivery.bytes)) [[likely]] {
    if (pair.is(QpType::rc)) answers_.owe(pair);
  } else {
    execute(pair, delivery);
  }
  if (!pair.early.is_empty()) [[unlikely]]
    drain(pair);
}

/// Executes a request that lies in memory of its sender. If the sender has taken it back meanwhile, it never arrived.
void Responder::take_in_place(QueuePair& pair, const link::Delivery& delivery) {
  Answer answer;
  const bool is_well =
      executor_.begin(pair, delivery.envelope, delivery.size, answer) && executor_.put(pair, 0, delivery.bytes, answer);
  if (is_well && !delivery.is_good()) [[unlikely]] {
    ++shared_.counters.dropped_taken_back;
    pair.current.is_active = false;  // its receive stays with the queue pair, for the next request
    return;
  }
  if (is_well) executor_.finish(pair, answer);
  answers_.conclude(pair, delivery.envelope, answer);
  drain(pair);
}

void Responder::execute(QueuePair& pair, const link::Delivery& delivery) {
  const iovec piece{const_cast<std::byte*>(delivery.bytes.data()), delivery.bytes.size()};
  Answer answer;
  executor_.execute(pair, delivery.envelope, {&piece, 1}, delivery.size, answer);
  answers_.conclude(pair, delivery.envelope, answer);
}

void Responder::take_duplicate(QueuePair& pair, const link::Delivery& delivery) {
  ++shared_.counters.duplicates;
  if (pair.is(QpType::rc)) answers_.repeat(pair, delivery.envelope);
}

void Responder::take_early(QueuePair& pair, const link::Delivery& delivery) {
  if (!arrivals_.hold(pair, delivery)) return;
  if (!pair.is(QpType::uc) || pair.gap_due != base::kNever) return;
  pair.gap_due = shared_.now + kGapPatience;
  shared_.timers.set(pair.timer, pair.gap_due);
}

void Responder::end_gap(QueuePair& pair) {
  pair.gap_due = base::kNever;
  if (pair.early.is_empty() || !pair.can_receive()) return;
  const wire::RequestSequence first = arrivals_[pair.early.first].sequence;
  shared_.counters.dropped_gap += count_between(pair.turn.next(), first);
  pair.turn.pass_to(first);
  drain(pair);
  if (!pair.early.is_empty()) pair.gap_due = shared_.now + kGapPatience;
}

// Requests that waited -----------------------------------------------------------------------------------------------

void Responder::drain(QueuePair& pair) {
  while (!pair.early.is_empty() && !pair.current.is_active && pair.can_receive() && run_next(pair)) {
  }
  if (pair.early.has_dropped && !pair.current.is_active && pair.can_receive()) ask_for_dropped(pair);
  if (pair.early.is_empty()) pair.gap_due = base::kNever;
}

/// Returns true if the next request may be tried.
bool Responder::run_next(QueuePair& pair) {
  const std::uint32_t slot = pair.early.first;
  const std::int32_t distance = pair.turn.distance(arrivals_[slot].sequence);
  if (distance > 0) return false;
  arrivals_.unlink(pair, slot);
  if (distance == 0) return execute_held(pair, slot);
  arrivals_.drop(slot);  // a repetition of it was executed meanwhile
  return true;
}

bool Responder::execute_held(QueuePair& pair, std::uint32_t slot) {
  // The chain does not have this arrival any more, so drop_all() does not find it.
  Arrival& arrival = arrivals_[slot];
  const std::vector<Arrival::Piece> held = std::exchange(arrival.held, {});
  const wire::Envelope envelope = arrival.envelope;
  const bool is_linked = arrival.is_linked;
  Answer answer;
  bool is_well = executor_.begin(pair, envelope, arrival.size, answer);
  if (is_well && is_linked) pair.current.arrival = slot;
  for (const Arrival::Piece& piece : held) is_well = is_well && executor_.put(pair, piece.offset, piece.span(), answer);
  if (is_well && is_linked) {
    arrivals_.let_go(arrival);
    return false;
  }
  if (is_well) is_well = executor_.finish(pair, answer);
  if (arrival.pair != Arrival::kNone) arrivals_.drop(slot);
  answers_.conclude(pair, envelope, answer);
  return is_well || !pair.is(QpType::rc);
}

void Responder::ask_for_dropped(QueuePair& pair) {
  const std::int32_t distance = pair.turn.distance(pair.early.dropped_first);
  if (distance <= 0) pair.early.has_dropped = false;
  if (distance == 0) ask_to_go_back(pair);
}

void Responder::ask_to_go_back(QueuePair& pair) {
  if (pair.is(QpType::rc)) answers_.send(pair, pair.turn.next(), {.verdict = Verdict::go_back});
}

// In chunks ----------------------------------------------------------------------------------------------------------

void Responder::take_first_chunk(QueuePair& pair, const link::Delivery& delivery) {
  const std::uint32_t slot = arrivals_.open_request(pair, delivery);
  if (slot == Arrival::kNone) {
    ++shared_.counters.refused_no_room;
    return ask_to_go_back(pair);
  }
  Answer answer;
  if (!executor_.begin(pair, delivery.envelope, delivery.size, answer)) {
    arrivals_.drop(slot);
    answers_.conclude(pair, delivery.envelope, answer);
    return drain(pair);
  }
  pair.current.arrival = slot;
  put_chunk(pair, delivery);
}

/// Places a chunk of the current request.
void Responder::put_chunk(QueuePair& pair, const link::Delivery& delivery) {
  const std::uint32_t slot = pair.current.arrival;
  const wire::Envelope envelope = pair.current.envelope;
  Answer answer;
  const bool is_well = executor_.put(pair, delivery.offset, delivery.bytes, answer);
  if (is_well && pair.current.left != 0) return;
  if (is_well) {
    pair.current.arrival = Arrival::kNone;
    arrivals_[slot].is_linked = false;
    executor_.finish(pair, answer);
  }
  if (arrivals_[slot].pair != Arrival::kNone) arrivals_.drop(slot);
  answers_.conclude(pair, envelope, answer);
  drain(pair);
}

void Responder::take_chunk(std::uint32_t slot, const link::Delivery& delivery) {
  Arrival& arrival = arrivals_[slot];
  if (delivery.is_last) arrival.is_linked = false;
  if (arrival.pair == Arrival::kNone) {
    if (delivery.is_last) arrivals_.release(slot);
    return;
  }
  QueuePair& pair = *pairs_.at(arrival.pair);
  if (pair.current.arrival == slot) return put_chunk(pair, delivery);
  arrivals_.hold_more(pair, slot, delivery);
}

void Responder::lose_receive(QueuePair& pair) {
  const std::uint32_t slot = pair.current.arrival;
  const wire::Envelope envelope = pair.current.envelope;
  Answer answer;
  if (executor_.lose_receive(pair, answer)) return;
  if (pair.route.is_local) return;  // the other end looks for itself
  if (slot != Arrival::kNone && arrivals_[slot].pair != Arrival::kNone) arrivals_.drop(slot);
  answers_.conclude(pair, envelope, answer);
}

void Responder::end_arrival(std::uint32_t slot) {
  Arrival& arrival = arrivals_[slot];
  arrival.is_linked = false;
  QueuePair* const pair = arrival.pair == Arrival::kNone ? nullptr : pairs_.at(arrival.pair);
  if (pair == nullptr) return arrivals_.release(slot);
  if (pair->current.arrival == slot) {
    // The receive stays with the queue pair, for the same request if it is sent again.
    pair->current.arrival = Arrival::kNone;
    pair->current.is_active = false;
  } else {
    arrivals_.unlink(*pair, slot);
  }
  arrivals_.drop(slot);
}

}  // namespace fairlead::qp
