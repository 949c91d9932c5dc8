#include "qp/requester.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/scatter.hpp"
#include "qp/post_check.hpp"
#include "shm/transport.hpp"

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;
namespace flags = wire::request_flags;

namespace {

/// A queue in SQD still sends what it has begun.
RequestNumber end_of_sending(const QueuePair& pair) {
  if (pair.state() == QpState::rts) return pair.sends.tail();
  return pair.state() == QpState::sqd ? pair.sends.begun() : pair.sends.next();
}

/// Stores a binding in the fields of other requests.
void keep(SendEntry& entry, const verbs::WindowBinding& binding) {
  entry.rkey = binding.key;
  entry.imm = binding.window;
  entry.remote_addr = binding.addr;
  entry.compare_add = binding.length;
  entry.swap = std::uint64_t{binding.access} << 32 | binding.lkey;
}
verbs::WindowBinding binding_of(const SendEntry& entry) {
  return {.window = entry.imm,
          .key = entry.rkey,
          .lkey = static_cast<std::uint32_t>(entry.swap),
          .access = static_cast<std::uint32_t>(entry.swap >> 32),
          .addr = entry.remote_addr,
          .length = entry.compare_add};
}

}  // namespace

// Posting ------------------------------------------------------------------------------------------------------------

int Requester::post(QueuePair& pair, const verbs::SendRequest& request) {
  std::uint64_t length = 0;
  if (pair.state() < QpState::rts || !is_possible(pair.plan, request, length)) return EINVAL;
  const std::uint32_t retired = parts_.completer.account(pair).sends.count();
  if (pair.sends.tail().value - retired >= pair.plan.capacity.max_send_wr) return ENOMEM;
  SendEntry& entry = pair.sends.post(request, length);
  if (request.opcode == verbs::SendOpcode::bind_window) [[unlikely]]
    keep(entry, *request.binding);
  // Without a branch: queue_mask clears both for requests that are not XRC.
  entry.remote_qpn = wire::SharedQueue::word_of(request.remote_srqn) & pair.queue_mask;
  entry.flags |= static_cast<std::uint8_t>(SendEntry::kOfShared & pair.queue_mask);
  if (!pair.is(QpType::ud)) return 0;
  entry.to = shared_.address_of(*request.to, request.remote_qpn);
  entry.remote_qpn = request.remote_qpn;
  entry.remote_qkey = (request.remote_qkey & 0x8000'0000U) != 0 ? pair.attributes.qkey : request.remote_qkey;
  entry.traffic_class = request.to->traffic_class;
  entry.hop_limit = request.to->hop_limit;
  return 0;
}

// Sending ------------------------------------------------------------------------------------------------------------

void Requester::pump(QueuePair& pair) {
  SendQueue& sends = pair.sends;
  const RequestNumber next_before = sends.next();
  while (!pair.is_closing && !pair.patience.is_lost && !pair.awaits_turn && sends.next() != end_of_sending(pair)) {
    if (pair.patience.is_paused && shared_.now < pair.patience.resume_at) break;
    pair.patience.is_paused = false;
    if (!start_short(pair, sends.next()) && !start(pair, sends.next())) break;
  }
  sends.note_begun();
  if (pair.state() == QpState::err || pair.state() == QpState::sqe) [[unlikely]]
    return parts_.completer.flush_sends(pair);
  // Unreliable requests have completed already, and their owner might never poll again.
  if (pair.route.has_peer && sends.next() != next_before)
    shared_.transports->send_eagerly(pair.route.peer, shared_.now);
  if (!sends.is_empty()) shared_.timers.set(pair.timer, pair.due());
}

bool Requester::start(QueuePair& pair, RequestNumber number) {
  SendEntry& entry = pair.sends[number];
  if (entry.has_failed()) return false;  // it fails when all before it are complete
  if (pair.is(QpType::ud)) return start_datagram(pair, number);
  if (pair.sends.is_repeated(number) && !pair.is(QpType::uc) && pair.sends.is_settled(number)) {
    pair.sends.skip();  // only requests that need it are sent again
    return true;
  }
  return start_connected(pair, number, entry);
}

bool Requester::start_connected(QueuePair& pair, RequestNumber number, const SendEntry& entry) {
  const OpcodeTraits& traits = entry.traits();
  if (traits.is_local()) [[unlikely]]
    return start_of_window(pair, number);
  const bool has_length = entry.length <= kMessageMax && (!traits.is_atomic() || entry.length == sizeof(std::uint64_t));
  if (!has_length) return refuse(pair, number, WcStatus::loc_len_err, Cause::too_long);
  if (traits.has_result()) {
    const std::uint8_t most = pair.attributes.max_rd_atomic;
    if (most == 0) return refuse(pair, number, WcStatus::loc_qp_op_err, Cause::bad_request);
    if (pair.sends.reads_out() >= most) return false;
  }
  if (entry.has(verbs::send_flags::fence) && pair.sends.reads_out() != 0) return false;
  if (shared_.turn.is_over()) [[unlikely]]
    return wait_for_turn(pair);
  if (pair.route.is_local) return start_local(pair, number);
  if (traits.is_one_sided()) {
    const OneSided::Result result = parts_.one_sided.carry_out(pair, number);
    if (result == OneSided::Result::partly) return wait_for_turn(pair);
    if (result != OneSided::Result::sent_as_message) return result == OneSided::Result::done;
  }
  return start_remote(pair, number);
}

/// Fails the request once all before it are complete.
bool Requester::refuse(QueuePair& pair, RequestNumber number, WcStatus status, Cause cause) {
  if (cause == Shared::kNoRoomToCopy) return wait_for_room(pair);
  pair.sends[number].fail(status, cause);
  parts_.outstanding.complete_in_order(pair);
  return false;
}

bool Requester::wait_for_room(QueuePair& pair) {
  if (!std::exchange(pair.is_stalled, true)) stalled_.push_back(pair.index);  // reserved in the constructor
  return false;
}

bool Requester::wait_for_turn(QueuePair& pair) {
  if (!std::exchange(pair.awaits_turn, true)) ++awaiting_turn_;
  return wait_for_room(pair);
}

void Requester::end_stall(QueuePair& pair) {
  if (std::exchange(pair.awaits_turn, false)) --awaiting_turn_;
  pair.is_stalled = false;
}

bool Requester::start_datagram(QueuePair& pair, RequestNumber number) {
  SendEntry& entry = pair.sends[number];
  if (entry.length > Datagrams::kBytesMost) return refuse(pair, number, WcStatus::loc_len_err, Cause::too_long);
  GatherList list;
  if (const Cause cause = shared_.gather(pair, number, 0, list); cause != Cause::none)
    return refuse(pair, number, WcStatus::loc_prot_err, cause);
  const Datagrams::Sent sent = entry.remote_qpn == verbs::kMulticastQpn ? parts_.groups.send(pair, entry, list)
                                                                        : parts_.datagrams.send(pair, number, list);
  if (sent == Datagrams::Sent::no_room) return wait_for_room(pair);
  if (sent == Datagrams::Sent::pair_ended) return false;
  ++shared_.counters.requests_sent;
  pair.sends.skip();
  if (sent == Datagrams::Sent::done) parts_.outstanding.complete_unanswered(pair, entry);
  return true;
}

// Binds or invalidates a window, when all earlier requests are complete and no later one has begun.
bool Requester::start_of_window(QueuePair& pair, RequestNumber number) {
  if (number != pair.sends.head()) return false;
  SendEntry& entry = pair.sends[number];
  if (entry.has(SendEntry::kOfShared)) return refuse(pair, number, WcStatus::loc_qp_op_err, Cause::bad_request);
  RegionTable& regions = shared_.regions;
  if (entry.opcode == verbs::SendOpcode::bind_window) {
    const Cause cause = regions.bind(binding_of(entry), pair.plan.domain, pair.number);
    if (cause != Cause::none) return refuse(pair, number, WcStatus::mw_bind_err, cause);
  } else {
    if (!regions.is_invalidable(entry.rkey, pair.plan.domain, pair.number))
      return refuse(pair, number, WcStatus::loc_qp_op_err, Cause::key_unknown);
    regions.invalidate(entry.rkey);
  }
  pair.sends.carried_out();
  if (pair.is(QpType::uc)) {
    parts_.outstanding.complete_unanswered(pair, entry);
  } else {
    parts_.outstanding.take_answer(pair, number, {});
  }
  return true;
}

// In this engine -----------------------------------------------------------------------------------------------------

namespace {

/// Returns whether the responder accepts this request now. On UC it skips lost requests.
Cause judge_local(const QueuePair& pair, QueuePair* responder, wire::RequestSequence sequence) {
  if (responder == nullptr || responder->plan.type != pair.plan.type) return Cause::no_such_queue_pair;
  if (!responder->can_receive()) return Cause::queue_pair_not_ready;
  if (!responder->route.is_local || responder->attributes.dest_qp_num != pair.number) return Cause::sequence_mismatch;
  if (sequence == responder->turn.next()) return Cause::none;
  if (!pair.is(QpType::uc)) return Cause::sequence_mismatch;
  responder->turn.pass_to(sequence);
  return Cause::none;
}

}  // namespace

bool Requester::start_local(QueuePair& pair, RequestNumber number) {
  SendEntry& entry = pair.sends[number];
  QueuePair* const responder = parts_.pairs.find_number(pair.attributes.dest_qp_num);
  const Cause cause = judge_local(pair, responder, pair.sends.sequence_of(number));
  GatherList list;
  if (entry.traits().has_data() && entry.length != 0) {
    if (const Cause wrong = shared_.gather(pair, number, 0, list); wrong != Cause::none)
      return refuse(pair, number, WcStatus::loc_prot_err, wrong);
  }
  pair.sends.sent_local();
  if (entry.copied == 0) ++shared_.counters.requests_sent;
  if (cause == Cause::none) return execute_local(pair, number, *responder, list);
  entry.copied = 0;
  ++shared_.counters.refused_not_ready;
  if (pair.is(QpType::uc)) {
    parts_.outstanding.complete_unanswered(pair, entry);
    return true;
  }
  parts_.outstanding.not_ready(pair, number, cause);
  return false;
}

bool Requester::execute_local(QueuePair& pair, RequestNumber number, QueuePair& responder, const GatherList& list) {
  SendEntry& entry = pair.sends[number];
  const OpcodeTraits& traits = entry.traits();
  const std::uint32_t incarnation = pair.incarnation;
  const bool is_read = traits.has_result() && !traits.is_atomic();
  if (is_read && entry.length != 0) {
    const Judgement judged = parts_.executor.judge(responder, envelope_of(pair, number), 0);
    if (judged.is_allowed()) place_local_result(pair, number, judged.place);
    if (judged.is_allowed() && entry.copied < entry.length) return put_off(pair, number);
  }
  Answer answer;
  const bool is_well = put_local(pair, number, responder, list, answer);
  if (pair.incarnation != incarnation || !pair.sends.is_out(number)) return false;
  if (is_well && traits.has_data() && entry.copied < entry.length) return put_off(pair, number);
  if (pair.is(QpType::uc)) {
    parts_.outstanding.complete_unanswered(pair, entry);
    return true;
  }
  if (is_well && traits.is_atomic())
    parts_.outstanding.place_result(pair, number, 0, std::as_bytes(std::span(&answer.value, 1)));
  if (is_well && traits.has_result()) parts_.outstanding.finish_result(pair, number);
  parts_.outstanding.take_answer(pair, number, answer);
  return true;
}

/// What is left of it waits for the next turn; or it has failed.
bool Requester::put_off(QueuePair& pair, RequestNumber number) {
  if (pair.sends[number].has_failed()) {
    parts_.outstanding.complete_in_order(pair);
    return false;
  }
  pair.sends.go_back(number);
  return wait_for_turn(pair);
}

namespace {

/// Whether the responder has so much of this request, and waits for the rest.
bool goes_on(const CurrentRequest& current, const wire::Envelope& envelope, std::uint64_t copied) {
  return copied != 0 && current.is_active && current.envelope.key == envelope.key &&
         current.envelope.source_port == envelope.source_port && current.size - current.left == copied;
}

}  // namespace

/// As much of it as the turn permits; a copy that was made for it goes at once. False: `answer` says why.
bool Requester::put_local(QueuePair& pair, RequestNumber number, QueuePair& responder, const GatherList& list,
                          Answer& answer) {
  SendEntry& entry = pair.sends[number];
  const wire::Envelope envelope = envelope_of(pair, number);
  const std::uint64_t size = entry.traits().has_data() ? entry.length : 0;
  if (!goes_on(responder.current, envelope, entry.copied)) {
    entry.copied = 0;
    if (!parts_.executor.begin(responder, envelope, size, answer)) return false;
  }
  const std::uint64_t left = size - entry.copied;
  const std::uint64_t step = list.copy() != nullptr ? left : std::min(left, shared_.turn.left());
  std::array<iovec, kSgesMax> part;
  for (const iovec& piece : base::scatter_part(list.pieces(), entry.copied, step, part)) {
    const std::span bytes(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
    if (!parts_.executor.put(responder, entry.copied, bytes, answer)) return false;
    entry.copied += bytes.size();
  }
  shared_.turn.spend(step);
  return entry.copied < size || parts_.executor.finish(responder, answer);
}

/// Of a read, the same. It fails if it finds no place.
void Requester::place_local_result(QueuePair& pair, RequestNumber number, const Permit& from) {
  SendEntry& entry = pair.sends[number];
  const std::uint64_t end = entry.copied + std::min(entry.length - entry.copied, shared_.turn.left());
  shared_.turn.spend(end - entry.copied);
  const auto* const bytes = static_cast<const std::byte*>(from.range().iov_base);
  std::array<std::byte, 16384> some;  // of memory that may go
  while (entry.copied < end && !entry.has_failed()) {
    const std::uint64_t step =
        from.is_checked() ? std::min<std::uint64_t>(end - entry.copied, some.size()) : end - entry.copied;
    if (from.is_checked() && !base::read_checked(some.data(), bytes + entry.copied, step))
      return parts_.outstanding.fail(pair, number, WcStatus::rem_access_err, Cause::out_of_range);
    parts_.outstanding.place_result(pair, number, entry.copied,
                                    {from.is_checked() ? some.data() : bytes + entry.copied, step});
    if (!entry.has_failed()) entry.copied += step;
  }
}

// As a message -------------------------------------------------------------------------------------------------------

wire::Envelope envelope_of(QueuePair& pair, RequestNumber number) {
  const SendEntry& entry = pair.sends[number];
  const OpcodeTraits& traits = entry.traits();
  const int solicited = entry.has(verbs::send_flags::solicited) ? flags::solicited : 0;
  const int imm = traits.has_imm ? flags::imm : 0;
  const auto queue = wire::SharedQueue::of_word(entry.remote_qpn);
  wire::Envelope envelope{.operation = traits.operation,
                          .status = queue.status,
                          .flags = static_cast<std::uint16_t>(solicited | imm | queue.flags),
                          .source_port = wire::encode(pair.port()),
                          .target_port = pair.attributes.dest_qp_num,
                          .key = wire::encode(wire::RequestKey{.sequence = pair.sends.sequence_of(number)}),
                          .cookie = traits.has_imm ? entry.imm : 0};
  if (entry.opcode == verbs::SendOpcode::send_invalidate) {
    envelope.flags |= flags::invalidates;
    envelope.key |= entry.rkey;
  }
  if (traits.is_send()) return envelope;
  envelope.key |= entry.rkey;
  envelope.offset = entry.remote_addr;
  if (entry.opcode == verbs::SendOpcode::atomic_write) envelope.flags |= flags::word;
  if (!traits.has_result()) return envelope;
  envelope.a = entry.length;
  if (!traits.is_atomic()) return envelope;
  const bool is_add = entry.opcode == verbs::SendOpcode::fetch_add;
  if (is_add) envelope.flags |= flags::fetch_add;
  envelope.cookie = is_add ? 0 : entry.compare_add;
  envelope.a = is_add ? entry.compare_add : entry.swap;
  return envelope;
}

namespace {

/// Lets a request carry the owed acknowledgement.
template <typename Word>
void carry_answer(const QueuePair& pair, std::uint16_t& flags, std::uint32_t& target_port, Word& last) {
  flags |= flags::acknowledges;
  target_port = wire::encode(pair.peer_port());
  last = pair.turn.last().value;
}

}  // namespace

/// The fast path: a short send with at most one SGE goes directly to a local peer's ring, if nothing waits there.
/// Returns false if start() has to handle the request; nothing has changed then.
bool Requester::start_short(QueuePair& pair, RequestNumber number) {
  const PairRoute& route = pair.route;
  SendEntry& entry = pair.sends[number];
  const bool is_plain =
      entry.opcode == verbs::SendOpcode::send && entry.sge_count <= 1 && entry.length <= shared_.bounds.copied_max &&
      !entry.has(verbs::send_flags::fence | SendEntry::kOfShared) && !entry.has_failed() &&
      !pair.sends.is_repeated(number) && pair.is(QpType::rc) && route.has_peer && shm::Transport::has(route.peer);
  if (!is_plain) return false;
  const std::byte* from = pair.sends.inlined_of(number);
  if (entry.sge_count != 0 && entry.length != 0) {
    const verbs::Sge& sge = pair.sends.sges_of(number)[0];
    const Permit place = shared_.regions.locate(sge.lkey, pair.plan.domain, sge.addr, sge.length, 0);
    if (place.is_refused() || place.is_checked()) [[unlikely]]
      return false;
    from = place.at();
  }
  wire::ShmHead head{.kind = wire::ShmKind::ordered,
                     .operation = std::to_underlying(wire::Operation::pair_send),
                     .flags = entry.has(verbs::send_flags::solicited) ? flags::solicited : std::uint16_t{0},
                     .source_port = wire::encode(pair.port()),
                     .target_port = pair.attributes.dest_qp_num};
  wire::ShmOrdered words{.key = pair.sends.sequence_of(number).value};
  if (pair.is_answer_owed) carry_answer(pair, head.flags, head.target_port, words.a);
  if (!shared_.shm_transport()->send_turn(route.peer, head, words, {from, entry.length},
                                          copied_cookie({pair.index, number}), shared_.now)) [[unlikely]]
    return false;
  pair.is_answer_owed = false;
  ++pair.flights;
  ++shared_.counters.fast_sends;
  note_sent(pair, entry);
  return true;
}

bool Requester::start_remote(QueuePair& pair, RequestNumber number) {
  SendEntry& entry = pair.sends[number];
  GatherList list;
  if (entry.traits().has_data() && entry.length != 0) {
    if (const Cause cause = shared_.gather(pair, number, 0, list); cause != Cause::none)
      return refuse(pair, number, WcStatus::loc_prot_err, cause);
  }
  link::Outgoing message{.envelope = envelope_of(pair, number),
                         .pieces = list.pieces(),
                         .size = entry.traits().has_data() ? entry.length : 0};
  const Status status = submit(pair, number, message, list);
  if (status == Status::ok) [[likely]] {
    note_sent(pair, entry);
  } else if (status == Status::again) {
    return wait_for_room(pair);
  } else if (pair.is(QpType::rc)) {
    parts_.outstanding.lose(pair, status);
    return false;
  } else {
    ++shared_.counters.dropped_unreachable;
    pair.sends.skip();
  }
  // Unreliable requests are done when the transport has copied them, or no longer refers to their memory.
  const bool is_over = message.size <= shared_.bounds.copied_max || status != Status::ok;
  if (!pair.is(QpType::rc) && is_over) parts_.outstanding.complete_unanswered(pair, entry);
  return true;
}

/// Submits a request. It carries the owed acknowledgement. Before a long one that waits for others the acknowledgement
/// is sent alone.
Status Requester::submit(QueuePair& pair, RequestNumber number, link::Outgoing& message, const GatherList& list) {
  if (shared_.transports == nullptr) return Status::unreachable;
  wire::Envelope& envelope = message.envelope;
  // Resolved each time: the transport to a local peer may have changed.
  const Status found = shared_.transports->resolve_ordered(pair.route.address, shared_.now, pair.route.peer);
  if (found != Status::ok) return found;
  pair.route.has_peer = true;
  const bool carries =
      pair.is_answer_owed && has_data(envelope.operation) &&
      (message.size <= shared_.bounds.copied_max || shared_.transports->sends_at_once(pair.route.peer));
  if (carries) carry_answer(pair, envelope.flags, envelope.target_port, envelope.a);
  if (pair.is_answer_owed && !carries) parts_.answers.send_owed(pair);
  const Status status = shared_.submit(pair, {pair.index, number, true}, message, list);
  if (carries && status == Status::ok) pair.is_answer_owed = false;
  return status;
}

// Waiting ------------------------------------------------------------------------------------------------------------

void Requester::retry_stalled() {
  constexpr std::size_t kTriesInPass = 64;
  for (std::size_t tries = std::min(stalled_.size(), kTriesInPass); tries > 0 && !shared_.turn.is_over(); --tries) {
    QueuePair& pair = *parts_.pairs.at(stalled_.front());
    stalled_.erase(stalled_.begin());
    end_stall(pair);
    pump(pair);
  }
}

void Requester::recall_waiting() {
  shared_.flights.for_each(
      [&](const FlightOwner& owner, link::PeerHandle peer, link::Reference reference, std::uint64_t cookie) {
        QueuePair& pair = *parts_.pairs.at(owner.pair);
        const bool is_repeatable = owner.is_request && pair.is(QpType::rc) && pair.can_ask();
        if (!is_repeatable || !shared_.transports->recall(peer, reference, cookie)) return;
        parts_.answers.owe(pair);  // it may have carried an acknowledgement
        if (pair.sends.is_out(owner.number)) shared_.counters.requests_repeated += pair.sends.go_back(owner.number);
      });
}

void Requester::end_wait(QueuePair& pair) {
  Patience& patience = pair.patience;
  if (patience.is_paused && shared_.now >= patience.resume_at) {
    if (patience.is_lost) return parts_.outstanding.end_lost(pair);
    pump(pair);
  }
  const bool is_waiting = pair.is(QpType::rc) && pair.sends.is_any_out() && !patience.is_paused && pair.can_ask();
  if (!is_waiting || shared_.now < patience.answer_due) return;
  const RequestNumber oldest = pair.sends.head();
  patience.answer_due = shared_.now + pair.answer_patience();
  if (pair.sends[oldest].flights != 0) return;  // the transport is sending it, and reports a lost peer
  if (pair.attributes.timeout != 0) {
    if (patience.retries_left == 0) {
      parts_.outstanding.fail(pair, oldest, WcStatus::retry_exc_err, Cause::no_answer);
      return parts_.outstanding.complete_in_order(pair);
    }
    --patience.retries_left;
  }
  parts_.outstanding.go_back(pair, oldest, {});
  pump(pair);
}

}  // namespace fairlead::qp
