// What comes back to the requester's half of a flow: answers, and the link's word about requests; what it completes in
// order, or sends again.

#include <algorithm>
#include <array>

#include "base/ensure.hpp"
#include "qp/flows.hpp"

namespace fairlead::qp {
namespace {

using verbs::Cause;
using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;

constexpr base::Duration kNotReadyPauseFirst = std::chrono::milliseconds(1);
constexpr base::Duration kNotReadyPauseMost = std::chrono::milliseconds(50);
constexpr base::Duration kGoBackPause = std::chrono::microseconds(100);

// IBTA's codes of the RNR timer, in microseconds.
constexpr std::array<std::uint32_t, 32> kRnrMicroseconds{
    655'360, 10,     20,     30,     40,     60,      80,      120,     160,     240,    320,
    480,     640,    960,    1'280,  1'920,  2'560,   3'840,   5'120,   7'680,   10'240, 15'360,
    20'480,  30'720, 40'960, 61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520};

}  // namespace

// Answers ------------------------------------------------------------------------------------------------------------

void Flows::on_answer(const link::Delivery& delivery, base::Instant now) {
  const wire::Envelope& envelope = delivery.envelope;
  Flow* flow = find_number(envelope.target_port & 0xFF'FFFF);
  const bool is_ours = flow != nullptr && flow->plan.type == QpType::rc &&
                       (flow->state() == QpState::rts || flow->state() == QpState::sqd) && !flow->is_lost &&
                       flow->attributes.dest_qp_num == envelope.source_port &&
                       (envelope.target_port >> 24) == (flow->life & 0xFF) &&
                       flow->peer_address == transports_->address(delivery.peer);
  if (!is_ours) {
    ++counters_.dropped_late_answer;
    return;
  }
  const std::uint32_t number = static_cast<std::uint32_t>(envelope.key >> 32) - flow->first_sequence;
  if (number + 1 - flow->head > flow->next - flow->head || envelope.status > std::to_underlying(kVerdictLast)) {
    // The acknowledgement of what is complete already: one more costs nothing.
    if (envelope.status != 0) ++counters_.dropped_late_answer;
    return;
  }
  Answer answer{.verdict = static_cast<Verdict>(envelope.status),
                .cause = static_cast<Cause>(envelope.flags & 0xFF),
                .value = envelope.cookie,
                .rnr_code = static_cast<std::uint8_t>(envelope.a & 31)};
  const bool carries_result = (envelope.flags & kCarriesResult) != 0 && answer.verdict == Verdict::ack;
  if (!carries_result) return take_answer(*flow, number, answer, now);

  if (number - flow->head >= flow->next - flow->head) return;
  SendEntry& entry = flow->entry(number);
  if (!entry.is_read() || entry.is_done || entry.status != WcStatus::success) {
    ++counters_.dropped_late_answer;
    return;
  }
  if (entry.is_atomic()) {
    place_read(*flow, number, 0, std::as_bytes(std::span(&answer.value, 1)));
  } else if (delivery.size != entry.length) {
    fail_request(*flow, number, WcStatus::bad_resp_err, Cause::bad_request);
  } else if (delivery.reassembly == link::Delivery::kWhole) {
    place_read(*flow, number, 0, delivery.bytes);
  } else {
    const std::uint32_t slot = arrivals_.acquire(Waiting::Kind::answer);
    if (slot == kNone) return;  // asked for again when no answer has come
    Waiting& arrival = arrivals_[slot];
    arrival.flow = flow->index;
    arrival.sequence = number;
    arrival.life = flow->life;
    transports_->set_target(delivery.peer, delivery.reassembly, target_of(slot));
    on_answer_chunk(slot, delivery, now);
    return;
  }
  finish_read(*flow, number, now);
  take_answer(*flow, number, answer, now);
}

void Flows::on_answer_chunk(std::uint32_t slot, const link::Delivery& delivery, base::Instant now) {
  Waiting& arrival = arrivals_[slot];
  Flow* flow = flows_[arrival.flow].get();
  const std::uint32_t number = arrival.sequence;
  const bool is_wanted = flow != nullptr && flow->life == arrival.life && !flow->is_lost &&
                         number - flow->head < flow->next - flow->head && !flow->entry(number).is_done &&
                         flow->entry(number).status == WcStatus::success;
  if (delivery.is_last) arrivals_.release(slot);
  if (!is_wanted) {
    counters_.dropped_late_answer += delivery.is_last;
    return;
  }
  await(*flow, now);
  place_read(*flow, number, delivery.offset, delivery.bytes);
  if (!delivery.is_last) return;
  finish_read(*flow, number, now);
  take_answer(*flow, number, {}, now);
}

/// An acknowledgement that came with a request of the other side, which is known to be connected to us.
void Flows::take_carried_answer(Flow& flow, std::uint32_t target_port, std::uint32_t sequence, base::Instant now) {
  const bool is_ours = flow.plan.type == QpType::rc && (flow.state() == QpState::rts || flow.state() == QpState::sqd) &&
                       !flow.is_lost && (target_port >> 24) == (flow.life & 0xFF);
  const std::uint32_t number = sequence - flow.first_sequence;
  if (!is_ours) {
    ++counters_.dropped_late_answer;
  } else if (number + 1 - flow.head <= flow.next - flow.head) {
    take_answer(flow, number, {}, now);
  }
}

void Flows::take_answer(Flow& flow, std::uint32_t number, const Answer& answer, base::Instant now) {
  switch (answer.verdict) {
    case Verdict::ack:
      acknowledge(flow, number + 1, now);
      break;
    case Verdict::rnr:
      acknowledge(flow, number, now);
      if (number - flow.head >= flow.next - flow.head) break;
      if (flow.attributes.rnr_retry != 7 && flow.rnr_left == 0) {
        fail_request(flow, number, WcStatus::rnr_retry_exc_err, Cause::no_receive_posted);
        break;
      }
      if (flow.attributes.rnr_retry != 7) --flow.rnr_left;
      go_back(flow, number, std::chrono::microseconds(kRnrMicroseconds[answer.rnr_code]), now);
      break;
    case Verdict::invalid:
    case Verdict::access:
    case Verdict::operation:
      acknowledge(flow, number, now);
      if (number - flow.head >= flow.next - flow.head) break;
      fail_request(flow, number,
                   answer.verdict == Verdict::invalid  ? WcStatus::rem_inv_req_err
                   : answer.verdict == Verdict::access ? WcStatus::rem_access_err
                                                       : WcStatus::rem_op_err,
                   answer.cause);
      break;
    case Verdict::not_ready:
      if (number - flow.head < flow.next - flow.head) not_ready(flow, number, answer.cause, now);
      break;
    case Verdict::go_back:
      acknowledge(flow, number, now);
      if (number - flow.head < flow.next - flow.head) go_back(flow, number, kGoBackPause, now);
      break;
  }
  complete_in_order(flow, now);
  pump(flow, now);
}

/// All before `end` have been executed.
void Flows::acknowledge(Flow& flow, std::uint32_t end, base::Instant now) {
  if (static_cast<std::int32_t>(end - flow.acked) <= 0) return;
  flow.acked = end;
  flow.retries_left = flow.attributes.retry_cnt;
  flow.rnr_left = flow.attributes.rnr_retry;
  flow.not_ready_since = base::kNever;
  await(flow, now);
}

void Flows::finish_read(Flow& flow, std::uint32_t number, base::Instant now) {
  SendEntry& entry = flow.entry(number);
  if (entry.status != WcStatus::success) return;
  entry.is_done = true;
  --flow.reads_out;
  await(flow, now);
}

/// The request has failed; what was sent after it does not count any more.
void Flows::fail_request(Flow& flow, std::uint32_t number, WcStatus status, Cause cause) {
  go_back(flow, number, {}, now_);
  SendEntry& entry = flow.entry(number);
  entry.status = status;
  entry.cause = cause;
}

void Flows::place_read(Flow& flow, std::uint32_t number, std::uint64_t offset, std::span<const std::byte> bytes) {
  const Cause cause = scatter(flow.sges_of(number), flow.plan.domain, offset, bytes);
  if (cause != Cause::none) fail_request(flow, number, WcStatus::loc_prot_err, cause);
}

void Flows::go_back(Flow& flow, std::uint32_t number, base::Duration pause, base::Instant now) {
  for (std::uint32_t i = number; i != flow.next; ++i) {
    const SendEntry& entry = flow.entry(i);
    if (entry.is_read() && !entry.is_done) --flow.reads_out;
  }
  counters_.requests_repeated += flow.next - number;
  flow.next = number;
  flow.is_paused = pause > base::Duration::zero();
  flow.resume_at = now + pause;
  set_timer(flow, due(flow));
}

/// The other side is not there yet: asked again often, for as long as the retries and the timeout say.
void Flows::not_ready(Flow& flow, std::uint32_t number, Cause cause, base::Instant now) {
  if (flow.not_ready_since == base::kNever) {
    flow.not_ready_since = now;
    flow.not_ready_pause = kNotReadyPauseFirst;
  }
  const auto patience = answer_patience(flow) * (flow.attributes.retry_cnt + 1);
  if (flow.attributes.timeout != 0 && now - flow.not_ready_since >= patience) {
    fail_request(flow, number, WcStatus::retry_exc_err, cause);
    return complete_in_order(flow, now);
  }
  go_back(flow, number, flow.not_ready_pause, now);
  flow.not_ready_pause = std::min(2 * flow.not_ready_pause, kNotReadyPauseMost);
}

// Completing ---------------------------------------------------------------------------------------------------------

void Flows::complete_in_order(Flow& flow, base::Instant) {
  while (flow.head != flow.tail) {
    SendEntry& entry = flow.entry(flow.head);
    if (entry.status != WcStatus::success) [[unlikely]]
      return fail_head(flow, entry.status, entry.cause);
    if (flow.head == flow.next) break;
    const bool is_done = flow.plan.type == QpType::rc && !entry.is_read()
                             ? static_cast<std::int32_t>(flow.acked - flow.head) > 0
                             : entry.is_done;
    if (!is_done) break;
    ++flow.head;
    complete_send(flow, entry, WcStatus::success, Cause::none);
    if (flow.state() == QpState::err) [[unlikely]]
      return;  // its completion found no room
  }
  if (flow.state() == QpState::sqd) [[unlikely]]
    check_drained(flow);
}

void Flows::fail_head(Flow& flow, WcStatus status, Cause cause) {
  SendEntry& entry = flow.entry(flow.head);
  if (flow.next == flow.head) ++flow.next;
  ++flow.head;
  complete_send(flow, entry, status, cause);
  if (flow.plan.type == QpType::rc) return enter_error(flow);
  if (flow.state() == QpState::err) return;
  flow.attributes.state = QpState::sqe;
  flush_sends(flow);
}

// The link's word ----------------------------------------------------------------------------------------------------

void Flows::end_outcome(const link::Outcome& outcome, base::Instant now) {
  now_ = now;
  const auto name = static_cast<std::uint32_t>(outcome.cookie & ~(kOurs | kEmbedded));
  const auto upper = static_cast<std::uint32_t>(outcome.cookie >> 32);
  std::uint32_t index = name, number = upper;
  bool is_request = true;
  if ((outcome.cookie & kEmbedded) == 0) {
    Flight* flight = flights_.find(name, upper);
    ENSURE(flight != nullptr, "the outcome of flight {} came twice", name);
    index = flight->flow;
    number = flight->number;
    is_request = flight->is_request;
    for (std::uint32_t i = 0; i < flight->count; ++i) {
      if (flight->regions[i] != kNone) regions_.let_go(flight->regions[i]);
    }
    flights_.release(name);
  }
  Flow* flow = flows_[index].get();
  ENSURE(flow != nullptr && flow->flights > 0, "flow index {} was freed with a message in the link", index);
  --flow->flights;
  if (!is_request || number - flow->head >= flow->tail - flow->head) return;
  SendEntry& entry = flow->entry(number);
  if (entry.flights == 0) return;
  --entry.flights;
  if (number - flow->head >= flow->next - flow->head) return;  // it has to be sent again, whatever became of it
  if (flow->plan.type != QpType::rc) {
    entry.is_done = true;
    if (outcome.status != Status::ok) ++counters_.dropped_unreachable;
    complete_in_order(*flow, now);
    return pump(*flow, now);
  }
  if (outcome.status == Status::ok) [[likely]] {
    if (number == flow->head) flow->answer_due = now + answer_patience(*flow);
    return;
  }
  const bool is_settled = entry.is_read() ? entry.is_done : static_cast<std::int32_t>(flow->acked - number) > 0;
  if (is_settled) return;
  lose(*flow, outcome.status, now);
}

}  // namespace fairlead::qp
