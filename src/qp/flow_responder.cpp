// The responder's half of a flow: requests are executed one after the other, in the order of their sequence.
//
// What is wrong with a request is told to the requester (RC) and ends both ends of the flow; UC drops it. Nothing in an
// envelope is trusted: who may ask is compared with whom this end is connected to, then rights, keys and ranges.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "qp/flows.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using Wire = wire::Operation;

namespace {

std::uint32_t sequence_of(const wire::Envelope& envelope) {
  return static_cast<std::uint32_t>(envelope.key >> 32);
}
std::uint32_t rkey_of(const wire::Envelope& envelope) {
  return static_cast<std::uint32_t>(envelope.key);
}
bool has_data(const wire::Envelope& envelope) {
  return envelope.operation == Wire::flow_send || envelope.operation == Wire::flow_write;
}

}  // namespace

void Flows::deliver(const link::Delivery& delivery, base::Instant now) {
  now_ = now;
  if (!delivery.is_first) return on_chunk(delivery, now);
  switch (delivery.envelope.operation) {
    case Wire::flow_answer:
      return on_answer(delivery, now);
    case Wire::flow_datagram: {
      const iovec piece{const_cast<std::byte*>(delivery.bytes.data()), delivery.bytes.size()};
      if (delivery.reassembly != link::Delivery::kWhole) return start_datagram_chunked(delivery);
      return on_datagram(delivery.envelope, transports_->address(delivery.peer), {&piece, 1}, delivery.size);
    }
    default:
      return on_request(delivery, now);
  }
}

void Flows::on_request(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& envelope = delivery.envelope;
  Flow* found = find_number(envelope.target_port & 0xFF'FFFF);
  if (found == nullptr || found->plan.type == QpType::ud) {
    return refuse(delivery, Cause::no_such_queue_pair, now);
  }
  Flow& flow = *found;
  if (!flow.can_receive()) return refuse(delivery, Cause::queue_pair_not_ready, now);
  const std::uint32_t sequence = sequence_of(envelope);
  const bool is_connected = flow.attributes.dest_qp_num == (envelope.source_port & 0xFF'FFFF) &&
                            flow.peer_address == transports_->address(delivery.peer);
  if (!is_connected || !flow.turn.is_possible(sequence)) return refuse(delivery, Cause::sequence_mismatch, now);
  if (!has_data(envelope) && delivery.size != 0) {
    ++counters_.dropped_malformed;
    return;
  }
  flow.peer = delivery.peer;
  flow.has_peer = true;
  flow.requester_life = static_cast<std::uint8_t>(envelope.source_port >> 24);
  if (has_data(envelope) && (envelope.flags & Flags::kAcknowledges) != 0) {
    take_carried_answer(flow, envelope.target_port, static_cast<std::uint32_t>(envelope.a), now);
    // A completion may have found no room, and ended it.
    if (!flow.can_receive()) return refuse(delivery, Cause::queue_pair_not_ready, now);
  }
  if (const std::int32_t distance = flow.turn.distance(sequence); distance != 0) {
    return distance < 0 ? on_duplicate(flow, delivery, now) : hold(flow, delivery, now);
  }
  if (flow.current.is_active) {
    ++counters_.duplicates;  // sent again while the first copy is still coming
    return;
  }
  if (delivery.reassembly != link::Delivery::kWhole) return start_chunked(flow, delivery, now);
  const iovec piece{const_cast<std::byte*>(delivery.bytes.data()), delivery.bytes.size()};
  Answer answer;
  execute(flow, envelope, {&piece, 1}, delivery.size, answer);
  conclude(flow, envelope, answer, now);
  if (flow.first_arrival != Waiting::kNone) [[unlikely]]
    drain(flow, now);
}

void Flows::refuse(const link::Delivery& delivery, Cause cause, base::Instant now) {
  ++counters_.refused_not_ready;
  submit_answer(delivery.peer,
                {.operation = Wire::flow_answer,
                 .status = std::to_underlying(Verdict::not_ready),
                 .flags = static_cast<std::uint16_t>(cause),
                 .source_port = delivery.envelope.target_port & 0xFF'FFFF,
                 .target_port = delivery.envelope.source_port,
                 .key = delivery.envelope.key & ~0xFFFF'FFFFULL},
                now);
}

/// Executed before; its answer may be lost. Reads are read again, atomics answer what they answered.
void Flows::on_duplicate(Flow& flow, const link::Delivery& delivery, base::Instant now) {
  ++counters_.duplicates;
  if (flow.plan.type != QpType::rc) return;
  const wire::Envelope& envelope = delivery.envelope;
  if (envelope.operation == Wire::flow_read) {
    answer_read(flow, envelope, now);
  } else if (envelope.operation == Wire::flow_atomic) {
    if (const Judgement judged = judge(flow, envelope, delivery.size); !judged.is_allowed()) {
      return refuse_again(flow, envelope, judged, now);
    }
    const auto stored = std::ranges::find_if(flow.atomics, [&](const Flow::AtomicResult& result) {
      return result.is_used && result.sequence == sequence_of(envelope);
    });
    if (stored != flow.atomics.end()) {
      send_answer(flow, stored->sequence, {.value = stored->value}, kCarriesResult, now);
    }
  }
  owe_answer(flow);
}

// Executing ----------------------------------------------------------------------------------------------------------

bool Flows::execute(Flow& flow, const wire::Envelope& envelope, std::span<const iovec> source, std::uint64_t size,
                    Answer& answer) {
  if (!begin(flow, envelope, size, answer)) return false;
  std::uint64_t offset = 0;
  for (const iovec& piece : source) {
    const std::uint64_t step = std::min<std::uint64_t>(piece.iov_len, size - offset);
    if (step == 0) continue;
    if (!put(flow, offset, {static_cast<const std::byte*>(piece.iov_base), step}, answer)) return false;
    offset += step;
  }
  return finish(flow, answer);
}

/// Whether the requester may have this done, by the queue pair's rights and the region's, be it new or asked for again.
/// What a send takes is looked at when it has its receive.
Flows::Judgement Flows::judge(const Flow& flow, const wire::Envelope& envelope, std::uint64_t size) const {
  const auto no = [](Verdict verdict, Cause cause) {
    return Judgement{.answer = {.verdict = verdict, .cause = cause}, .place = {}};
  };
  const bool is_atomic = envelope.operation == Wire::flow_atomic;
  std::uint32_t right = verbs::access::remote_write;
  if (is_atomic) {
    right = verbs::access::remote_atomic;
    size = sizeof(std::uint64_t);
  } else if (envelope.operation == Wire::flow_read) {
    right = verbs::access::remote_read;
    size = envelope.a;
  }
  if (size > kFlowMessageMax) return no(Verdict::invalid, Cause::too_long);
  if (envelope.operation == Wire::flow_send) return {};
  const bool has_right = (flow.attributes.access_flags & right) != 0 &&
                         (right == verbs::access::remote_write || flow.attributes.max_dest_rd_atomic != 0);
  if (!has_right) return no(Verdict::invalid, Cause::no_right);
  if (is_atomic && envelope.offset % sizeof(std::uint64_t) != 0) return no(Verdict::invalid, Cause::misaligned);
  if (size == 0) return {};
  const Permit place = regions_.locate(rkey_of(envelope), flow.plan.domain, envelope.offset, size, right);
  if (place.is_refused()) return no(Verdict::access, place.cause());
  // An iova may be aligned where the memory is not.
  if (is_atomic && reinterpret_cast<std::uintptr_t>(place.at()) % sizeof(std::uint64_t) != 0) {
    return no(Verdict::invalid, Cause::misaligned);
  }
  return {.answer = {}, .place = place};
}

bool Flows::begin(Flow& flow, const wire::Envelope& envelope, std::uint64_t size, Answer& answer) {
  if (!std::exchange(flow.has_heard, true) && flow.state() == QpState::rtr) {
    tell(flow, verbs::AsyncEventType::comm_est);
    show(flow);
  }
  flow.current.envelope = envelope;
  flow.current.size = flow.current.left = size;
  const bool is_write = envelope.operation == Wire::flow_write;
  const bool wants_receive = envelope.operation == Wire::flow_send || (is_write && (envelope.flags & Flags::kImm) != 0);
  const Judgement judged = judge(flow, envelope, size);
  note_wrong_key(flow, judged);
  // A wrong key is told in the receive, too, if the request takes one.
  const bool takes_receive = wants_receive && (judged.is_allowed() || judged.answer.verdict == Verdict::access);
  if (takes_receive && !take_receive(flow)) {
    return fail_current(flow, Verdict::rnr, Cause::no_receive_posted, answer);
  }
  if (!judged.is_allowed()) return fail_current(flow, judged.answer.verdict, judged.answer.cause, answer);
  if (envelope.operation == Wire::flow_send) {
    std::uint64_t room = 0;
    const auto sges = std::span(flow.receive_sges).first(flow.current.receive_sges);
    for (const verbs::Sge& sge : sges) room += sge.length;
    if (size > room) return fail_current(flow, Verdict::invalid, Cause::too_long, answer);
    std::uint64_t left = size;
    for (const verbs::Sge& sge : sges) {
      const std::uint64_t step = std::min<std::uint64_t>(left, sge.length);
      if (step == 0) continue;
      const Permit found =
          regions_.locate(sge.lkey, pools_[flow.pool].plan.domain, sge.addr, step, verbs::access::local_write);
      if (found.is_refused()) return fail_current(flow, Verdict::operation, found.cause(), answer);
      left -= step;
    }
  }
  if (envelope.operation == Wire::flow_atomic) run_atomic(flow, envelope, judged.place, answer);
  flow.current.is_active = true;
  return true;
}

void Flows::run_atomic(Flow& flow, const wire::Envelope& envelope, const Permit& place, Answer& answer) {
  std::atomic_ref target = place.word();
  std::uint64_t before = envelope.cookie;
  if ((envelope.flags & Flags::kFetchAdd) != 0) {
    before = target.fetch_add(envelope.a);
  } else {
    target.compare_exchange_strong(before, envelope.a);
  }
  answer.value = before;
  flow.atomics[flow.atomics_next++ % flow.atomics.size()] = {sequence_of(envelope), before, true};
}

bool Flows::take_receive(Flow& flow) {
  if (flow.current.has_receive) return true;  // of a message whose sender was lost half-way
  Pool& pool = pools_[flow.pool];
  if (pool.head == pool.tail) return false;
  const auto sges = pool.sges_of(pool.head);
  std::ranges::copy(sges, flow.receive_sges.begin());
  flow.current.has_receive = true;
  flow.current.receive_id = pool.entry(pool.head).id;
  flow.current.receive_sges = static_cast<std::uint32_t>(sges.size());
  ++pool.head;
  if (pool.is_limit_armed && pool.count() < pool.plan.limit) {
    pool.is_limit_armed = false;
    if (pool.plan.events != nullptr) {
      pool.plan.events->produce({std::to_underlying(verbs::AsyncEventType::srq_limit_reached), pool.plan.cookie});
    }
  }
  return true;
}

/// Bytes of the current request.
bool Flows::put(Flow& flow, std::uint64_t offset, std::span<const std::byte> bytes, Answer& answer) {
  if (bytes.empty()) return true;
  Flow::Current& current = flow.current;
  current.left -= bytes.size();
  if (current.envelope.operation == Wire::flow_send) {
    const Cause cause =
        scatter(std::span(flow.receive_sges).first(current.receive_sges), pools_[flow.pool].plan.domain, offset, bytes);
    return cause == Cause::none || fail_current(flow, Verdict::operation, cause, answer);
  }
  if (offset + bytes.size() == current.size) {
    current.last = bytes.back();
    bytes = bytes.first(bytes.size() - 1);
  }
  if (bytes.empty()) return true;
  // Looked up again for each chunk: the region may have gone meanwhile.
  const Permit found = regions_.locate(rkey_of(current.envelope), flow.plan.domain, current.envelope.offset + offset,
                                       bytes.size(), verbs::access::remote_write);
  if (found.is_refused()) return fail_current(flow, Verdict::access, found.cause(), answer);
  found.write(bytes);
  return true;
}

bool Flows::finish(Flow& flow, Answer& answer) {
  const Flow::Current done = flow.current;
  const wire::Envelope& envelope = done.envelope;
  if (envelope.operation == Wire::flow_write && done.size != 0) {
    const Permit found = regions_.locate(rkey_of(envelope), flow.plan.domain, envelope.offset + done.size - 1, 1,
                                         verbs::access::remote_write);
    if (found.is_refused()) return fail_current(flow, Verdict::access, found.cause(), answer);
    found.store_last(done.last);
  }
  flow.current = {};
  flow.turn.pass();
  ++counters_.requests_executed;
  if (!done.has_receive) return true;
  const bool has_imm = (envelope.flags & Flags::kImm) != 0;
  complete_receive(flow, done.receive_id,
                   {.opcode = envelope.operation == Wire::flow_send ? WcOpcode::receive : WcOpcode::receive_write_imm,
                    .byte_len = static_cast<std::uint32_t>(done.size),
                    .imm = has_imm ? static_cast<std::uint32_t>(envelope.cookie) : 0,
                    .wc_flags = has_imm ? verbs::wc_flags::with_imm : 0},
                   (envelope.flags & Flags::kSolicited) != 0);
  return true;
}

/// The current request cannot be executed. RNR leaves everything as it was; all else ends a reliable flow.
bool Flows::fail_current(Flow& flow, Verdict verdict, Cause cause, Answer& answer) {
  answer = {.verdict = verdict, .cause = cause, .rnr_code = flow.attributes.min_rnr_timer};
  const Flow::Current failed = flow.current;
  flow.current.is_active = false;
  flow.current.arrival = Waiting::kNone;
  if (flow.plan.type == QpType::uc && (verdict == Verdict::rnr || verdict == Verdict::access || !failed.has_receive)) {
    ++counters_.dropped_no_receive;
    flow.turn.pass();
    return false;
  }
  if (verdict == Verdict::rnr) {
    ++counters_.receiver_not_ready;
    return false;
  }
  flow.current = {};
  if (failed.has_receive) {
    const bool is_send = failed.envelope.operation == Wire::flow_send;
    const WcStatus status = verdict == Verdict::access    ? WcStatus::loc_access_err
                            : verdict == Verdict::invalid ? WcStatus::loc_len_err
                                                          : WcStatus::loc_prot_err;
    complete_receive(flow, failed.receive_id,
                     {.status = status,
                      .opcode = is_send ? WcOpcode::receive : WcOpcode::receive_write_imm,
                      .vendor_err = std::to_underlying(cause)},
                     false);
  }
  if (verdict == Verdict::access) {
    tell(flow, verbs::AsyncEventType::qp_access_err);
  } else if (!failed.has_receive) {
    tell(flow, verbs::AsyncEventType::qp_req_err);
  }
  enter_error(flow);
  return false;
}

/// Both ends are here: executed at once. `read` is where the data of a read lies.
Flows::Answer Flows::execute_local(Flow& responder, const wire::Envelope& envelope, std::span<const iovec> source,
                                   std::uint64_t size, Permit& read) {
  Answer answer;
  if (execute(responder, envelope, source, size, answer) && envelope.operation == Wire::flow_read) {
    read = judge(responder, envelope, 0).place;
  }
  return answer;
}

/// Copies into pieces of registered memory, `offset` bytes from their start.
Cause Flows::scatter(std::span<const verbs::Sge> sges, std::uint32_t domain, std::uint64_t offset,
                     std::span<const std::byte> bytes) {
  for (const verbs::Sge& sge : sges) {
    if (bytes.empty()) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::uint64_t step = std::min<std::uint64_t>(sge.length - offset, bytes.size());
    const Permit found = regions_.locate(sge.lkey, domain, sge.addr + offset, step, verbs::access::local_write);
    if (found.is_refused()) return found.cause();
    found.write(bytes.first(step));
    bytes = bytes.subspan(step);
    offset = 0;
  }
  return Cause::none;
}

// Answering ----------------------------------------------------------------------------------------------------------

void Flows::conclude(Flow& flow, const wire::Envelope& envelope, const Answer& answer, base::Instant now) {
  if (flow.plan.type != QpType::rc) return;
  if (answer.verdict != Verdict::ack) return send_answer(flow, sequence_of(envelope), answer, 0, now);
  if (envelope.operation == Wire::flow_read) return answer_read(flow, envelope, now);
  if (envelope.operation == Wire::flow_atomic) {
    return send_answer(flow, sequence_of(envelope), answer, kCarriesResult, now);
  }
  owe_answer(flow);
}

// An acknowledgement waits for the next pass: until then it may travel with what the application answers.
void Flows::owe_answer(Flow& flow) {
  if (std::exchange(flow.is_answer_owed, true)) return;
  owing_.push_back(flow.index);
}

void Flows::send_owed(Flow& flow, base::Instant now) {
  send_answer(flow, flow.turn.next() - 1, {}, 0, now);
}

void Flows::send_answer(Flow& flow, std::uint32_t sequence, const Answer& answer, std::uint16_t flags,
                        base::Instant now) {
  // Every answer acknowledges what was before it; only this one tells of the last.
  if (sequence == flow.turn.next() - 1 || answer.verdict != Verdict::ack) flow.is_answer_owed = false;
  submit_answer(flow.peer,
                {.operation = Wire::flow_answer,
                 .status = std::to_underlying(answer.verdict),
                 .flags = static_cast<std::uint16_t>(std::to_underlying(answer.cause) | flags),
                 .source_port = flow.number,
                 .target_port = flow.attributes.dest_qp_num | static_cast<std::uint32_t>(flow.requester_life) << 24,
                 .key = static_cast<std::uint64_t>(sequence) << 32,
                 .cookie = answer.value,
                 .a = answer.rnr_code},
                now);
}

void Flows::submit_answer(link::PeerHandle peer, const wire::Envelope& envelope, base::Instant now) {
  const link::Outgoing message{.envelope = envelope, .pieces = {}, .size = 0, .cookie = 0, .wants_outcome = false};
  if (deferred_.has(peer) || transports_->submit(peer, message, now) == Status::again) {
    return defer(peer, {.envelope = envelope}, now);
  }
  ++counters_.answers_sent;
}

void Flows::note_wrong_key(const Flow& flow, const Judgement& judged) {
  const bool is_wrong = judged.answer.verdict == Verdict::access && judged.answer.cause == Cause::key_unknown;
  if (is_wrong && flow.has_peer && !flow.is_local) {
    transports_->offences().note_wrong_secret(flow.peer, transport::Secret::region, now_);
  }
}

/// What was executed before may not be done again. That does not end this end of the flow.
void Flows::refuse_again(Flow& flow, const wire::Envelope& envelope, const Judgement& judged, base::Instant now) {
  ++counters_.refused_repeats;
  note_wrong_key(flow, judged);
  send_answer(flow, sequence_of(envelope), judged.answer, 0, now);
}

void Flows::answer_read(Flow& flow, const wire::Envelope& envelope, base::Instant now) {
  if (try_answer_read(flow, envelope, now) == Status::again) {
    defer(flow.peer, {.envelope = envelope, .flow = flow.index, .life = flow.life}, now);
  }
}

Status Flows::try_answer_read(Flow& flow, const wire::Envelope& envelope, base::Instant now) {
  // Some time may have passed since it was executed, or asked for first.
  const Judgement judged = judge(flow, envelope, 0);
  if (!judged.is_allowed()) {
    refuse_again(flow, envelope, judged, now);
    return Status::ok;
  }
  const std::uint64_t length = envelope.a;
  const Permit found = judged.place;
  link::Outgoing message{
      .envelope = {.operation = Wire::flow_answer,
                   .flags = kCarriesResult,
                   .source_port = flow.number,
                   .target_port = flow.attributes.dest_qp_num | static_cast<std::uint32_t>(flow.requester_life) << 24,
                   .key = envelope.key & ~0xFFFF'FFFFULL},
      .pieces = {},
      .size = length,
      .cookie = 0,
      .wants_outcome = false};
  Status status = Status::ok;
  if (length <= bounds_.copied_max) {
    const iovec piece = found.range();
    message.pieces = {&piece, 1};
    status = transports_->submit(flow.peer, message, now);
  } else {
    const std::uint32_t slot = flights_.acquire();
    if (slot == kNone) return Status::again;
    Flight& flight = flights_[slot];
    flight.flow = flow.index;
    flight.peer = flow.peer;
    flight.is_request = false;
    flight.count = 1;
    flight.pieces[0] = found.range();
    flight.regions[0] = found.slot();
    message.pieces = {flight.pieces.data(), 1};
    message.cookie = static_cast<std::uint64_t>(flights_.generation(slot)) << 32 | kOurs | slot;
    message.wants_outcome = true;
    status = transports_->submit(flow.peer, message, now);
    if (status != Status::ok) {
      flights_.release(slot);
    } else {
      regions_.hold(found.slot());
      ++flow.flights;
    }
  }
  if (status == Status::ok) ++counters_.answers_sent;
  return status;
}

/// The link has no room: tried again in later passes, in order.
void Flows::defer(link::PeerHandle peer, const Deferred& answer, base::Instant now) {
  if (const auto excess = deferred_.add(peer, answer, now)) {
    transports_->offences().condemn(*excess, transport::Offence::takes_no_answers);
  }
}

void Flows::retry_deferred(base::Instant now) {
  constexpr std::size_t kTriesInPass = 256;
  deferred_.retry(kTriesInPass, now, [&](link::PeerHandle peer, const Deferred& first) {
    Status status = Status::ok;
    if (first.flow == kNone) {
      const link::Outgoing message{
          .envelope = first.envelope, .pieces = {}, .size = 0, .cookie = 0, .wants_outcome = false};
      status = transports_->submit(peer, message, now);
      if (status == Status::ok) ++counters_.answers_sent;
    } else if (Flow* flow = flows_[first.flow].get();
               flow != nullptr && flow->life == first.life && flow->can_receive()) {
      status = try_answer_read(*flow, first.envelope, now);
    }
    return status != Status::again;
  });
}

}  // namespace fairlead::qp
