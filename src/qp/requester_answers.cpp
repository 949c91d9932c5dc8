// Answers, results and outcomes of requests.

#include "base/ensure.hpp"
#include "qp/requester.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;
using verbs::WcStatus;

namespace {

/// Returns whether answers are expected: of this incarnation, and from a peer that is not lost.
bool expects_answers(const QueuePair& pair, std::uint32_t target_port) {
  return pair.is(QpType::rc) && pair.can_ask() && !pair.patience.is_lost &&
         wire::decode_pair_port(target_port).incarnation == pair.port().incarnation;
}

bool expects_result(QueuePair& pair, RequestNumber number) {
  const SendEntry& entry = pair.sends[number];
  return entry.traits().has_result() && !entry.is_done && !entry.has_failed();
}

}  // namespace

void Requester::take_answer(const link::Delivery& delivery) {
  const wire::Envelope& envelope = delivery.envelope;
  QueuePair* const pair = parts_.pairs.find_number(wire::decode_pair_port(envelope.target_port).number);
  const bool is_ours = pair != nullptr && expects_answers(*pair, envelope.target_port) &&
                       pair->attributes.dest_qp_num == envelope.source_port &&
                       pair->route.address == shared_.transports->address(delivery.peer);
  if (!is_ours) {
    ++shared_.counters.dropped_late_answer;
    return;
  }
  pair->route.is_proven = true;
  const RequestNumber number = pair->sends.number_of(wire::decode_request_key(envelope.key).sequence);
  const auto answer = decode_answer(envelope);
  if (!answer || !pair->sends.is_out_or_last(number)) {
    // A late acknowledgement of completed requests is harmless and not counted.
    if (envelope.status != 0) ++shared_.counters.dropped_late_answer;
    return;
  }
  if (answer->carries_result) return take_result(*pair, number, *answer, delivery);
  parts_.outstanding.take_answer(*pair, number, *answer);
  pump_more(*pair);
}

void Requester::take_result(QueuePair& pair, RequestNumber number, const Answer& answer,
                            const link::Delivery& delivery) {
  if (!pair.sends.is_out(number)) return;
  if (!expects_result(pair, number)) {
    ++shared_.counters.dropped_late_answer;
    return;
  }
  const SendEntry& entry = pair.sends[number];
  if (entry.traits().is_atomic()) {
    parts_.outstanding.place_result(pair, number, 0, std::as_bytes(std::span(&answer.value, 1)));
  } else if (delivery.size != entry.length) {
    parts_.outstanding.fail(pair, number, WcStatus::bad_resp_err, Cause::bad_request);
  } else if (delivery.reassembly == link::Delivery::kWhole) {
    parts_.outstanding.place_result(pair, number, 0, delivery.bytes);
    if (!delivery.is_good()) [[unlikely]] {
      ++shared_.counters.dropped_taken_back;
      return;  // as if it had been lost
    }
  } else {
    const std::uint32_t slot = parts_.arrivals.open_answer(pair, delivery);
    if (slot != Arrival::kNone) take_answer_chunk(slot, delivery);  // else the timer sends the request again
    return;
  }
  finish_result(pair, number, answer);
}

void Requester::finish_result(QueuePair& pair, RequestNumber number, const Answer& answer) {
  parts_.outstanding.finish_result(pair, number);
  parts_.outstanding.take_answer(pair, number, answer);
  pump_more(pair);
}

void Requester::take_answer_chunk(std::uint32_t slot, const link::Delivery& delivery) {
  const Arrival& arrival = parts_.arrivals[slot];
  QueuePair* const pair = parts_.pairs.at(arrival.pair);
  const bool is_there = pair != nullptr && pair->incarnation == arrival.incarnation && !pair->patience.is_lost;
  const RequestNumber number = is_there ? pair->sends.number_of(arrival.sequence) : RequestNumber{};
  if (delivery.is_last) parts_.arrivals.release(slot);
  if (!is_there || !pair->sends.is_out(number) || !expects_result(*pair, number)) {
    shared_.counters.dropped_late_answer += delivery.is_last ? 1 : 0;
    return;
  }
  pair->await(shared_.now);
  parts_.outstanding.place_result(*pair, number, delivery.offset, delivery.bytes);
  if (delivery.is_last) finish_result(*pair, number, {});
}

void Requester::take_carried_answer(QueuePair& pair, const wire::Envelope& envelope) {
  if (!expects_answers(pair, envelope.target_port)) {
    ++shared_.counters.dropped_late_answer;
    return;
  }
  const RequestNumber number = pair.sends.number_of({static_cast<std::uint32_t>(envelope.a)});
  if (!pair.sends.is_out_or_last(number)) return;
  parts_.outstanding.take_answer(pair, number, {});
  pump_more(pair);
}

void Requester::end_outcome(const link::Outcome& outcome) {
  const FlightOwner owner =
      is_copied(outcome.cookie) ? owner_of_copied(outcome.cookie) : shared_.flights.end(outcome.cookie);
  QueuePair* const pair = parts_.pairs.at(owner.pair);
  ENSURE(pair != nullptr && pair->flights > 0, "queue pair index {} was freed with a message in flight", owner.pair);
  --pair->flights;
  if (!owner.is_request || !pair->sends.is_posted(owner.number)) return;
  SendEntry& entry = pair->sends[owner.number];
  if (entry.flights == 0) return;
  --entry.flights;
  // A request that was taken back is sent again, or has been already.
  const bool is_repeated =
      !pair->sends.is_out(owner.number) || (outcome.status == Status::canceled && entry.flights != 0);
  if (!is_repeated) end_request(*pair, owner.number, outcome.status);
}

void Requester::end_request(QueuePair& pair, RequestNumber number, Status status) {
  if (!pair.is(QpType::rc)) {
    if (status != Status::ok) ++shared_.counters.dropped_unreachable;
    parts_.outstanding.complete_unanswered(pair, pair.sends[number]);
    return pump(pair);
  }
  if (status == Status::ok) [[likely]] {
    if (number == pair.sends.head()) pair.patience.answer_due = shared_.now + pair.answer_patience();
    return;
  }
  if (!pair.sends.is_settled(number)) parts_.outstanding.lose_session(pair, status);
}

}  // namespace fairlead::qp
