// The requester's half of a flow: what is posted is sent in order. What comes back is flow_answers.cpp's.
//
// The link delivers each message exactly once, so sending again is for other reasons: the responder had no receive
// posted (RNR), was not ready yet, had no room for what came early, or its answer never came though the link says that
// the request arrived. A request sent again keeps its sequence; the responder recognises what it has executed.

#include <algorithm>
#include <array>

#include "qp/flows.hpp"

namespace fairlead::qp {
namespace {

using verbs::Cause;
using verbs::QpState;
using verbs::QpType;
using verbs::SendOpcode;
using verbs::WcStatus;

constexpr base::Duration kPatienceLeast = std::chrono::milliseconds(50);
constexpr base::Duration kPatienceWithoutTimeout = std::chrono::seconds(1);

}  // namespace

base::Duration Flows::answer_patience(const Flow& flow) {
  if (flow.attributes.timeout == 0) return kPatienceWithoutTimeout;
  return std::max(kPatienceLeast, std::chrono::nanoseconds(4096LL << flow.attributes.timeout));
}

// Sending ------------------------------------------------------------------------------------------------------------

/// A queue that is being drained still ends what it has begun.
std::uint32_t Flows::end_of_sending(const Flow& flow) {
  if (flow.state() == QpState::rts) return flow.tail;
  return flow.state() == QpState::sqd ? flow.begun : flow.next;
}

void Flows::pump(Flow& flow, base::Instant now) {
  if (flow.is_pumping) return;  // a local answer came while we were at it
  flow.is_pumping = true;
  const std::uint32_t next_before = flow.next;
  while (!flow.is_closing && !flow.is_lost && flow.next != end_of_sending(flow)) {
    if (flow.is_paused && now < flow.resume_at) break;
    flow.is_paused = false;
    if (!start(flow, flow.next, now)) break;
  }
  flow.is_pumping = false;
  if (static_cast<std::int32_t>(flow.next - flow.begun) > 0) flow.begun = flow.next;
  if (flow.state() == QpState::err || flow.state() == QpState::sqe) {
    flush_sends(flow);
    return;
  }
  // What is unreliable has completed already, so its owner may never look again.
  if (flow.has_peer && flow.next != next_before) transports_->send_eagerly(flow.peer, now);
  if (flow.head == flow.tail) return;
  set_timer(flow, due(flow));
}

/// True if the next one may be tried.
bool Flows::start(Flow& flow, std::uint32_t number, base::Instant now) {
  SendEntry& entry = flow.entry(number);
  if (entry.status != WcStatus::success) return false;  // it fails when its turn to complete comes
  if (flow.plan.type == QpType::ud) return start_datagram(flow, number, now);
  const bool is_acked = static_cast<std::int32_t>(flow.acked - number) > 0;
  if (entry.is_read() ? entry.is_done : is_acked) {
    ++flow.next;  // sent again are only those that need it
    return true;
  }
  if (entry.length > kFlowMessageMax) return refuse_start(flow, entry, WcStatus::loc_len_err, Cause::too_long);
  if (entry.is_atomic() && entry.length != 8) return refuse_start(flow, entry, WcStatus::loc_len_err, Cause::too_long);
  if (entry.is_read()) {
    if (flow.attributes.max_rd_atomic == 0) {
      return refuse_start(flow, entry, WcStatus::loc_qp_op_err, Cause::bad_request);
    }
    if (flow.reads_out >= flow.attributes.max_rd_atomic) return false;
  }
  if ((entry.flags & verbs::send_flags::fence) != 0 && flow.reads_out != 0) return false;
  if (flow.is_local) return start_local(flow, number, now);
  switch (start_direct(flow, number, now)) {
    case Direct::done:
      return true;
    case Direct::later:
      return false;
    case Direct::none:
      return start_remote(flow, number, now);
  }
  return false;
}

/// What is wrong with it shows when all before it are complete.
bool Flows::refuse_start(Flow& flow, SendEntry& entry, WcStatus status, Cause cause) {
  entry.status = status;
  entry.cause = cause;
  complete_in_order(flow, now_);
  return false;
}

wire::Envelope Flows::envelope_of(Flow& flow, std::uint32_t number) {
  const SendEntry& entry = flow.entry(number);
  wire::Envelope envelope{
      .source_port = flow.number | (flow.life & 0xFF) << 24,
      .target_port = flow.attributes.dest_qp_num,
      .key = static_cast<std::uint64_t>(flow.first_sequence + number) << 32,
  };
  const bool is_send = entry.opcode == SendOpcode::send || entry.opcode == SendOpcode::send_imm;
  if (!is_send) {
    envelope.key |= entry.rkey;
    envelope.offset = entry.remote_addr;
  }
  if ((entry.flags & verbs::send_flags::solicited) != 0) envelope.flags |= Flags::kSolicited;
  switch (entry.opcode) {
    case SendOpcode::send_imm:
      envelope.flags |= Flags::kImm;
      envelope.cookie = entry.imm;
      [[fallthrough]];
    case SendOpcode::send:
      envelope.operation = wire::Operation::flow_send;
      break;
    case SendOpcode::write_imm:
      envelope.flags |= Flags::kImm;
      envelope.cookie = entry.imm;
      [[fallthrough]];
    case SendOpcode::write:
      envelope.operation = wire::Operation::flow_write;
      break;
    case SendOpcode::read:
      envelope.operation = wire::Operation::flow_read;
      envelope.a = entry.length;
      break;
    case SendOpcode::fetch_add:
      envelope.flags |= Flags::kFetchAdd;
      envelope.operation = wire::Operation::flow_atomic;
      envelope.a = entry.compare_add;
      break;
    case SendOpcode::compare_swap:
      envelope.operation = wire::Operation::flow_atomic;
      envelope.cookie = entry.compare_add;
      envelope.a = entry.swap;
      break;
  }
  return envelope;
}

/// The pieces of what is to be sent, and the regions they lie in.
Cause Flows::gather(Flow& flow, std::uint32_t number, iovec* pieces, std::uint32_t* regions, std::uint32_t& count) {
  const SendEntry& entry = flow.entry(number);
  count = 0;
  if ((entry.flags & verbs::send_flags::inlined) != 0) {
    regions[0] = kNone;
    pieces[count++] = {flow.inlined_of(number), entry.length};
    return Cause::none;
  }
  for (const verbs::Sge& sge : flow.sges_of(number)) {
    if (sge.length == 0) continue;
    const Permit found = regions_.locate(sge.lkey, flow.plan.domain, sge.addr, sge.length, 0);
    if (found.is_refused()) return found.cause();
    regions[count] = found.slot();
    pieces[count++] = found.range();
  }
  return Cause::none;
}

bool Flows::start_remote(Flow& flow, std::uint32_t number, base::Instant now) {
  SendEntry& entry = flow.entry(number);
  link::Outgoing message{.envelope = envelope_of(flow, number), .pieces = {}, .size = 0};
  if (!entry.is_read()) message.size = entry.length;
  Status status = Status::ok;
  if (message.size <= bounds_.copied_max) {
    std::array<iovec, 32> pieces;
    std::array<std::uint32_t, 32> regions;
    std::uint32_t count = 0;
    if (message.size != 0) {
      if (const Cause cause = gather(flow, number, pieces.data(), regions.data(), count); cause != Cause::none) {
        return refuse_start(flow, entry, WcStatus::loc_prot_err, cause);
      }
    }
    message.pieces = {pieces.data(), count};
    message.cookie = embedded_cookie(flow.index, number);
    status = submit(flow, message, now);
  } else {
    const std::uint32_t slot = flights_.acquire();
    if (slot == kNone) {
      stall(flow);
      return false;
    }
    Flight& flight = flights_[slot];
    if (const Cause cause = gather(flow, number, flight.pieces.data(), flight.regions.data(), flight.count);
        cause != Cause::none) {
      flights_.release(slot);
      return refuse_start(flow, entry, WcStatus::loc_prot_err, cause);
    }
    flight.flow = flow.index;
    flight.number = number;
    flight.peer = flow.peer;
    flight.is_request = true;
    message.pieces = {flight.pieces.data(), flight.count};
    message.cookie = static_cast<std::uint64_t>(flights_.generation(slot)) << 32 | kOurs | slot;
    status = submit(flow, message, now);
    if (status != Status::ok) {
      flights_.release(slot);
    } else {
      for (std::uint32_t i = 0; i < flight.count; ++i) {
        if (flight.regions[i] != kNone) regions_.hold(flight.regions[i]);
      }
    }
  }
  if (status == Status::again) {
    stall(flow);
    return false;
  }
  if (status != Status::ok) {
    if (flow.plan.type == QpType::uc) {
      ++counters_.dropped_unreachable;
      entry.is_done = true;
      ++flow.next;
      complete_in_order(flow, now);
      return true;
    }
    lose(flow, status, now);
    return false;
  }
  ++counters_.requests_sent;
  ++flow.flights;
  ++entry.flights;
  entry.is_sent = true;
  if (!entry.is_one_sided()) flow.answered_end = number + 1;
  if (flow.head == flow.next) await(flow, now);
  ++flow.next;
  if (entry.is_read()) ++flow.reads_out;
  // Unreliable ones are done when they are handed over; those that the link refers to when it has let go.
  if (flow.plan.type == QpType::uc && (message.cookie & kEmbedded) != 0) {
    entry.is_done = true;
    complete_in_order(flow, now);
  }
  return true;
}

Status Flows::submit(Flow& flow, link::Outgoing& message, base::Instant now) {
  if (!transports_) return Status::unreachable;
  // Asked each time: a peer of this host may be reached another way by now.
  if (const Status status = transports_->resolve(flow.peer_address, now, flow.peer); status != Status::ok)
    return status;
  flow.has_peer = true;
  if (!flow.is_answer_owed) return transports_->submit(flow.peer, message, now);
  // What we owe travels with what we want.
  wire::Envelope& envelope = message.envelope;
  const bool is_with_data =
      envelope.operation == wire::Operation::flow_send || envelope.operation == wire::Operation::flow_write;
  // Long messages may wait for others.
  if (!is_with_data || message.size > bounds_.copied_max) {
    send_owed(flow, now);
    return transports_->submit(flow.peer, message, now);
  }
  envelope.flags |= Flags::kAcknowledges;
  envelope.target_port |= static_cast<std::uint32_t>(flow.requester_life) << 24;
  envelope.a = flow.turn.next() - 1;
  const Status status = transports_->submit(flow.peer, message, now);
  if (status == Status::ok) flow.is_answer_owed = false;
  return status;
}

bool Flows::start_local(Flow& flow, std::uint32_t number, base::Instant now) {
  SendEntry& entry = flow.entry(number);
  const wire::Envelope envelope = envelope_of(flow, number);
  Flow* responder = find_number(flow.attributes.dest_qp_num);
  Cause cause = Cause::none;
  if (responder == nullptr || responder->plan.type != flow.plan.type) {
    cause = Cause::no_such_queue_pair;
  } else if (!responder->can_receive()) {
    cause = Cause::queue_pair_not_ready;
  } else if (!responder->is_local || responder->attributes.dest_qp_num != flow.number) {
    cause = Cause::sequence_mismatch;
  }
  const auto sequence = static_cast<std::uint32_t>(envelope.key >> 32);
  if (cause == Cause::none && sequence != responder->turn.next()) {
    if (flow.plan.type == QpType::uc) {
      responder->turn.pass_to(sequence);  // what was lost is lost
    } else {
      cause = Cause::sequence_mismatch;
    }
  }
  std::array<iovec, 32> pieces;
  std::array<std::uint32_t, 32> regions;
  std::uint32_t count = 0;
  if (!entry.is_read() && entry.length != 0) {
    if (const Cause wrong = gather(flow, number, pieces.data(), regions.data(), count); wrong != Cause::none) {
      return refuse_start(flow, entry, WcStatus::loc_prot_err, wrong);
    }
  }
  ++flow.next;
  if (static_cast<std::int32_t>(flow.next - flow.begun) > 0) flow.begun = flow.next;  // it may have to come again
  if (entry.is_read()) ++flow.reads_out;
  ++counters_.requests_sent;
  if (cause != Cause::none) {
    ++counters_.refused_not_ready;
    if (flow.plan.type == QpType::uc) {
      entry.is_done = true;
      complete_in_order(flow, now);
      return true;
    }
    not_ready(flow, number, cause, now);
    return false;
  }
  Permit read;
  const std::uint32_t life = flow.life;
  const Answer answer =
      execute_local(*responder, envelope, {pieces.data(), count}, entry.is_read() ? 0 : entry.length, read);
  if (flow.life != life || number - flow.head >= flow.next - flow.head) return false;
  if (flow.plan.type == QpType::uc) {
    entry.is_done = true;
    complete_in_order(flow, now);
    return true;
  }
  if (answer.verdict == Verdict::ack && entry.is_read()) {
    if (entry.is_atomic()) {
      place_read(flow, number, 0, std::as_bytes(std::span(&answer.value, 1)));
    } else {
      place_read(flow, number, 0, {read.at(), entry.length});
    }
    finish_read(flow, number, now);
  }
  take_answer(flow, number, answer, now);
  return true;
}

}  // namespace fairlead::qp
