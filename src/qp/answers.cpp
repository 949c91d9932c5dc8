#include "qp/answers.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;
using Wire = wire::Operation;

namespace {

wire::RequestSequence sequence_in(const wire::Envelope& envelope) {
  return wire::decode_request_key(envelope.key).sequence;
}

}  // namespace

void Answers::conclude(QueuePair& pair, const wire::Envelope& envelope, const Answer& answer) {
  if (!pair.is(QpType::rc)) return;
  if (!answer.is_ack()) return send(pair, sequence_in(envelope), answer);
  if (envelope.operation == Wire::pair_read) return answer_read(pair, envelope);
  if (envelope.operation == Wire::pair_atomic)
    return send(pair, sequence_in(envelope), {.carries_result = true, .value = answer.value});
  owe(pair);
}

void Answers::repeat(QueuePair& pair, const wire::Envelope& envelope) {
  if (envelope.operation == Wire::pair_read) answer_read(pair, envelope);
  if (envelope.operation == Wire::pair_atomic) return repeat_atomic(pair, envelope);
  owe(pair);
}

void Answers::repeat_atomic(QueuePair& pair, const wire::Envelope& envelope) {
  if (const Judgement judged = executor_.judge(pair, envelope, 0); !judged.is_allowed())
    return refuse_repeat(pair, envelope, judged);
  const wire::RequestSequence sequence = sequence_in(envelope);
  if (const auto value = pair.atomics.find(sequence)) send(pair, sequence, {.carries_result = true, .value = *value});
  owe(pair);
}

/// Refuses to repeat a read or an atomic that is no longer permitted. The queue pair itself stays as it is.
void Answers::refuse_repeat(QueuePair& pair, const wire::Envelope& envelope, const Judgement& judged) {
  ++shared_.counters.refused_repeats;
  executor_.note_wrong_key(pair, judged);
  send(pair, sequence_in(envelope), judged.answer);
}

void Answers::refuse(const link::Delivery& delivery, Cause cause) {
  ++shared_.counters.refused_not_ready;
  const wire::Envelope& envelope = delivery.envelope;
  submit(delivery.peer,
         encode({.verdict = Verdict::not_ready, .cause = cause}, sequence_in(envelope),
                {.source = wire::decode_pair_port(envelope.target_port).number, .target = envelope.source_port}));
}

void Answers::send(QueuePair& pair, wire::RequestSequence sequence, const Answer& answer) {
  // Every answer acknowledges all earlier requests. Only an answer to the last one, or a refusal, settles the debt.
  if (sequence == pair.turn.last() || !answer.is_ack()) pair.is_answer_owed = false;
  submit(pair.route.peer, encode(answer, sequence, route_of(pair)));
}

bool Answers::send_all_owed() {
  for (std::size_t i = 0; i < owing_.size(); ++i) {
    QueuePair& pair = *pairs_.at(owing_[i]);
    if (pair.is_answer_owed) send_owed(pair);
  }
  owing_.clear();
  return true;
}

Status Answers::try_submit(link::PeerHandle peer, const wire::Envelope& envelope) {
  const Status status = shared_.transports->submit(
      peer, {.envelope = envelope, .pieces = {}, .size = 0, .cookie = 0, .wants_outcome = false}, shared_.now);
  shared_.counters.answers_sent += status == Status::ok ? 1 : 0;
  return status;
}

void Answers::submit(link::PeerHandle peer, const wire::Envelope& envelope) {
  if (deferred_.has(peer) || try_submit(peer, envelope) == Status::again) defer(peer, {.envelope = envelope});
}

// Reads --------------------------------------------------------------------------------------------------------------

void Answers::answer_read(QueuePair& pair, const wire::Envelope& envelope) {
  if (try_answer_read(pair, envelope) == Status::again)
    defer(pair.route.peer, {.envelope = envelope, .pair = pair.index, .incarnation = pair.incarnation});
}

Status Answers::try_answer_read(QueuePair& pair, const wire::Envelope& envelope) {
  if (is_held_) [[unlikely]]
    return Status::again;
  // The read may have been executed or requested some time ago.
  const Judgement judged = executor_.judge(pair, envelope, 0);
  if (!judged.is_allowed()) {
    refuse_repeat(pair, envelope, judged);
    return Status::ok;
  }
  link::Outgoing message{.envelope = encode({.carries_result = true}, sequence_in(envelope), route_of(pair)),
                         .pieces = {},
                         .size = envelope.a};
  message.wants_outcome = message.size > shared_.bounds.copied_max;
  GatherList list;
  if (const Cause cause = shared_.gather(judged.place, list); cause != Cause::none) [[unlikely]] {
    if (cause == Shared::kNoRoomToCopy) return Status::again;
    const Verdict verdict = cause == Cause::out_of_range ? Verdict::access : Verdict::operation;
    refuse_repeat(pair, envelope, {.answer = {.verdict = verdict, .cause = cause}, .place = {}});
    return Status::ok;
  }
  const Status status = shared_.submit(pair, {.pair = pair.index}, message, list);
  shared_.counters.answers_sent += status == Status::ok ? 1 : 0;
  return status;
}

// Retries ------------------------------------------------------------------------------------------------------------

void Answers::defer(link::PeerHandle peer, const Deferred& answer) {
  if (const auto excess = deferred_.add(peer, answer, shared_.now).excess)
    shared_.transports->offences().condemn(*excess, transport::Offence::takes_no_answers);
}

void Answers::retry() {
  constexpr std::size_t kTriesInPass = 256;
  deferred_.retry(kTriesInPass, shared_.now, [&](link::PeerHandle peer, const Deferred& first) {
    return try_again(peer, first) != Status::again;
  });
}

Status Answers::try_again(link::PeerHandle peer, const Deferred& first) {
  if (first.pair == Arrival::kNone) return try_submit(peer, first.envelope);
  QueuePair* const pair = pairs_.at(first.pair);
  const bool is_wanted = pair != nullptr && pair->incarnation == first.incarnation && pair->can_receive();
  return is_wanted ? try_answer_read(*pair, first.envelope) : Status::ok;
}

void Answers::drop(link::PeerHandle peer) {
  deferred_.drop(peer, [&](const Deferred&) { ++shared_.counters.dropped_answers; });
}

}  // namespace fairlead::qp
