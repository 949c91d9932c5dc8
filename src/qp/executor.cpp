#include "qp/executor.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fairlead/verbs/device.hpp>

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using Wire = wire::Operation;
namespace flags = wire::request_flags;

Judgement Executor::judge(const QueuePair& pair, const wire::Envelope& envelope, std::uint64_t size) const {
  const auto no = [](Verdict verdict, Cause cause) {
    return Judgement{.answer = {.verdict = verdict, .cause = cause}, .place = {}};
  };
  const bool is_atomic = envelope.operation == Wire::pair_atomic;
  const bool is_word = is_atomic || (envelope.operation == Wire::pair_write && (envelope.flags & flags::word) != 0);
  const std::uint32_t right = right_for(envelope.operation);
  if (is_atomic) size = sizeof(std::uint64_t);
  if (envelope.operation == Wire::pair_read) size = envelope.a;
  if (size > kMessageMax || (is_word && size != sizeof(std::uint64_t))) return no(Verdict::invalid, Cause::too_long);
  if (envelope.operation == Wire::pair_send) {
    const std::uint32_t key = wire::decode_request_key(envelope.key).rkey;
    const bool is_well = (envelope.flags & flags::invalidates) == 0 ||
                         shared_.regions.is_invalidable(key, pair.plan.domain, pair.number);
    return is_well ? Judgement{} : no(Verdict::access, Cause::key_unknown);
  }
  const bool has_right = (pair.attributes.access_flags & right) != 0 &&
                         (right == verbs::access::remote_write || pair.attributes.max_dest_rd_atomic != 0);
  if (!has_right) return no(Verdict::invalid, Cause::no_right);
  if (is_word && envelope.offset % sizeof(std::uint64_t) != 0) return no(Verdict::invalid, Cause::misaligned);
  if (size == 0) return {};
  const Permit place = shared_.regions.locate(wire::decode_request_key(envelope.key).rkey, domain_of(pair, envelope),
                                              envelope.offset, size, right, pair.number);
  if (place.is_refused()) return no(Verdict::access, place.cause());
  // An aligned iova may map to memory that is not aligned.
  if (is_word && reinterpret_cast<std::uintptr_t>(place.at()) % sizeof(std::uint64_t) != 0) {
    return no(Verdict::invalid, Cause::misaligned);
  }
  return {.answer = {}, .place = place};
}

void Executor::note_wrong_key(const QueuePair& pair, const Judgement& judged) {
  const bool is_wrong = judged.answer.verdict == Verdict::access && judged.answer.cause == Cause::key_unknown;
  if (is_wrong && pair.route.has_peer && !pair.route.is_local) {
    shared_.transports->offences().note_wrong_secret(pair.route.peer, transport::Secret::region, shared_.now);
  }
}

bool Executor::execute(QueuePair& pair, const wire::Envelope& envelope, std::span<const iovec> source,
                       std::uint64_t size, Answer& answer) {
  if (!begin(pair, envelope, size, answer)) return false;
  std::uint64_t offset = 0;
  for (const iovec& piece : source) {
    const std::uint64_t step = std::min<std::uint64_t>(piece.iov_len, size - offset);
    if (step == 0) continue;
    if (!put(pair, offset, {static_cast<const std::byte*>(piece.iov_base), step}, answer)) return false;
    offset += step;
  }
  return finish(pair, answer);
}

bool Executor::execute_plain(QueuePair& pair, const wire::Envelope& envelope, std::span<const std::byte> bytes) {
  constexpr std::uint16_t kPlain = flags::acknowledges | flags::solicited;
  if (envelope.operation != Wire::pair_send || (envelope.flags & ~kPlain) != 0 || !pair.has_heard ||
      pair.current.has_receive || bytes.size() > kMessageMax) [[unlikely]]
    return false;
  ReceiveQueue& queue = receives_[pair.receives];
  if (queue.is_empty()) [[unlikely]]
    return false;
  if (!bytes.empty()) {
    const std::span<const verbs::Sge> sges = queue.front().sges;
    if (sges.size() != 1 || bytes.size() > sges[0].length) [[unlikely]]
      return false;
    const Permit place =
        shared_.regions.locate(sges[0].lkey, queue.domain(), sges[0].addr, bytes.size(), verbs::access::local_write);
    if (place.is_refused()) [[unlikely]]
      return false;
    if (!place.write(bytes)) [[unlikely]]
      return false;
  }
  const std::uint64_t id = queue.take_id();
  pair.turn.pass();
  ++shared_.counters.requests_executed;
  ++shared_.counters.fast_receives;
  completer_.complete_plain_receive(pair, id, bytes.size(), (envelope.flags & flags::solicited) != 0);
  return true;
}

void Executor::note_heard(QueuePair& pair) {
  if (std::exchange(pair.has_heard, true) || pair.state() != verbs::QpState::rtr) return;
  completer_.tell(pair, verbs::AsyncEventType::comm_est);
  published_.publish(pair);
}

bool Executor::begin(QueuePair& pair, const wire::Envelope& envelope, std::uint64_t size, Answer& answer) {
  note_heard(pair);
  const bool is_shared = (envelope.flags & flags::shared) != 0;
  if (is_shared || pair.plan.end != PairEnd::both) [[unlikely]] {
    if (!enter_shared(pair, envelope)) return fail(pair, Verdict::invalid, Cause::no_such_shared_queue, answer);
  } else {
    pair.current.queue = pair.receives;
  }
  pair.current.envelope = envelope;
  pair.current.size = pair.current.left = size;
  const bool is_send = envelope.operation == Wire::pair_send;
  const bool wants_receive = is_send || (envelope.operation == Wire::pair_write && (envelope.flags & flags::imm) != 0);
  const Judgement judged = judge(pair, envelope, size);
  note_wrong_key(pair, judged);
  // A wrong key also fails the receive, if the request takes one.
  const bool takes_receive = wants_receive && (judged.is_allowed() || judged.answer.verdict == Verdict::access);
  if (takes_receive && !take_receive(pair, pair.current.queue))
    return fail(pair, Verdict::rnr, Cause::no_receive_posted, answer);
  if (!judged.is_allowed()) return fail(pair, judged.answer.verdict, judged.answer.cause, answer);
  if (is_send && !check_receive(pair, size, answer)) return false;
  if (envelope.operation == Wire::pair_atomic && !run_atomic(pair, envelope, judged.place, answer))
    return fail(pair, Verdict::access, Cause::out_of_range, answer);
  pair.current.is_active = true;
  return true;
}

/// XRC: the memory that a request names has to be in the domain of the receive queue that the request names.
std::uint32_t Executor::domain_of(const QueuePair& pair, const wire::Envelope& envelope) const {
  constexpr std::uint32_t kNoDomain = 0;
  if ((envelope.flags & flags::shared) == 0) [[likely]]
    return pair.plan.domain;
  const std::uint32_t slot =
      receives_.find_shared(wire::SharedQueue{envelope.flags, envelope.status}.number(), pair.plan.xrc_domain);
  return slot == ReceiveQueues::kNone ? kNoDomain : receives_[slot].domain();
}

/// XRC: selects the receive queue that the request names, for its receive and its completion.
bool Executor::enter_shared(QueuePair& pair, const wire::Envelope& envelope) {
  if (pair.plan.end != PairEnd::target || (envelope.flags & flags::shared) == 0) return false;
  const std::uint32_t slot =
      receives_.find_shared(wire::SharedQueue{envelope.flags, envelope.status}.number(), pair.plan.xrc_domain);
  if (slot == ReceiveQueues::kNone || (pair.current.has_receive && pair.current.queue != slot)) return false;
  ReceiveQueue& queue = receives_[slot];
  pair.current.queue = slot;
  pair.plan.receive_stream = queue.stream();
  if (pair.receive_sges.size() < queue.sges_max()) pair.receive_sges.resize(queue.sges_max());
  return true;
}

/// Checks that the receive has room for `size` bytes, in registered memory.
bool Executor::check_receive(QueuePair& pair, std::uint64_t size, Answer& answer) {
  if (size > room_of(pair.current_sges())) return fail(pair, Verdict::invalid, Cause::too_long, answer);
  const std::uint32_t domain = receives_[pair.current.queue].domain();
  std::uint64_t left = size;
  for (const verbs::Sge& sge : pair.current_sges()) {
    const std::uint64_t step = std::min<std::uint64_t>(left, sge.length);
    if (step == 0) continue;
    const Permit found = shared_.regions.locate(sge.lkey, domain, sge.addr, step, verbs::access::local_write);
    if (found.is_refused()) return fail(pair, Verdict::operation, found.cause(), answer);
    left -= step;
  }
  return true;
}

bool Executor::run_atomic(QueuePair& pair, const wire::Envelope& envelope, const Permit& place, Answer& answer) {
  std::uint64_t* const word = place.word();
  if (word == nullptr) return false;
  std::atomic_ref target(*word);
  std::uint64_t before = envelope.cookie;
  if ((envelope.flags & flags::fetch_add) != 0) {
    before = target.fetch_add(envelope.a);
  } else {
    target.compare_exchange_strong(before, envelope.a);
  }
  answer.value = before;
  pair.atomics.remember(wire::decode_request_key(envelope.key).sequence, before);
  return true;
}

bool Executor::look_for_receive(const QueuePair& pair, const ReceiveQueue& queue) {
  ReceiveSource* const source = pair.plan.receive_stream != nullptr ? pair.plan.receive_stream->source() : nullptr;
  if (source == nullptr) return false;
  source->post_for(queue);
  return !queue.is_empty();
}

bool Executor::take_receive(QueuePair& pair, std::uint32_t slot) {
  if (pair.current.has_receive) return true;  // left by a message whose sender was lost before it was complete
  ReceiveQueue& queue = receives_[slot];
  if (!has_receive(pair, queue)) return false;
  const TakenReceive taken = queue.take();
  std::ranges::copy(taken.sges, pair.receive_sges.begin());
  pair.current.has_receive = true;
  pair.current.receive_id = taken.id;
  pair.current.receive_sges = static_cast<std::uint32_t>(taken.sges.size());
  return true;
}

bool Executor::put(QueuePair& pair, std::uint64_t offset, std::span<const std::byte> bytes, Answer& answer) {
  if (bytes.empty()) return true;
  CurrentRequest& current = pair.current;
  current.left -= bytes.size();
  if (current.is(Wire::pair_send)) {
    const Cause cause = scatter(pair.current_sges(), receives_[pair.current.queue].domain(), offset, bytes);
    return cause == Cause::none || fail(pair, Verdict::operation, cause, answer);
  }
  if ((current.envelope.flags & flags::word) != 0) [[unlikely]] {
    current.keep_word(offset, bytes);
    return true;
  }
  if (offset + bytes.size() == current.size) {
    current.last = bytes.back();
    bytes = bytes.first(bytes.size() - 1);
  }
  if (bytes.empty()) return true;
  // Looked up again for each chunk: the region may have been deregistered.
  const Permit found =
      shared_.regions.locate(wire::decode_request_key(current.envelope.key).rkey, domain_of(pair, current.envelope),
                             current.envelope.offset + offset, bytes.size(), verbs::access::remote_write, pair.number);
  if (found.is_refused()) return fail(pair, Verdict::access, found.cause(), answer);
  return found.write(bytes) || fail(pair, Verdict::access, Cause::out_of_range, answer);
}

namespace {

bool store_whole(const Permit& place, std::uint64_t value) {
  std::uint64_t* const word = place.word();
  if (word != nullptr) std::atomic_ref(*word).store(value, std::memory_order_release);
  return word != nullptr;
}

}  // namespace

bool Executor::finish(QueuePair& pair, Answer& answer) {
  const CurrentRequest done = pair.current;
  const wire::Envelope& envelope = done.envelope;
  if (done.is(Wire::pair_write) && done.size != 0) {
    const bool is_word = (envelope.flags & flags::word) != 0;
    const std::uint64_t begin = is_word ? 0 : done.size - 1;
    const Permit found =
        shared_.regions.locate(wire::decode_request_key(envelope.key).rkey, domain_of(pair, envelope),
                               envelope.offset + begin, done.size - begin, verbs::access::remote_write, pair.number);
    if (found.is_refused()) return fail(pair, Verdict::access, found.cause(), answer);
    if (is_word ? !store_whole(found, done.word) : !found.store_last(done.last))
      return fail(pair, Verdict::access, Cause::out_of_range, answer);
  }
  const bool invalidates = done.is(Wire::pair_send) && (envelope.flags & flags::invalidates) != 0;
  const std::uint32_t invalidated = invalidates ? wire::decode_request_key(envelope.key).rkey : 0;
  if (invalidates) {
    // The window may have changed since the request began.
    if (!shared_.regions.is_invalidable(invalidated, pair.plan.domain, pair.number))
      return fail(pair, Verdict::access, Cause::key_unknown, answer);
    shared_.regions.invalidate(invalidated);
  }
  pair.current = {};
  pair.turn.pass();
  ++shared_.counters.requests_executed;
  if (!done.has_receive) return true;
  const bool has_imm = (envelope.flags & flags::imm) != 0;
  completer_.complete_receive(pair, done.receive_id,
                              {.opcode = done.is(Wire::pair_send) ? WcOpcode::receive : WcOpcode::receive_write_imm,
                               .byte_len = static_cast<std::uint32_t>(done.size),
                               .imm = has_imm ? static_cast<std::uint32_t>(envelope.cookie) : invalidated,
                               .wc_flags = has_imm       ? verbs::wc_flags::with_imm
                                           : invalidates ? verbs::wc_flags::with_inv
                                                         : 0},
                              (envelope.flags & flags::solicited) != 0);
  return true;
}

bool Executor::lose_receive(QueuePair& pair, Answer& answer) {
  pair.current.has_receive = false;
  completer_.flush_receive(pair, pair.current.receive_id);
  return !pair.current.is_active || fail(pair, Verdict::invalid, Cause::no_such_shared_queue, answer);
}

/// Ends the current request with an error and returns false. RNR leaves the queue pair as it is. UC drops the request
/// unless it failed in its receive. In all other cases the queue pair enters ERR.
bool Executor::fail(QueuePair& pair, Verdict verdict, Cause cause, Answer& answer) {
  answer = {.verdict = verdict, .cause = cause, .rnr_code = pair.attributes.min_rnr_timer};
  const CurrentRequest failed = pair.current;
  pair.current.is_active = false;
  pair.current.arrival = Arrival::kNone;
  if (pair.is(QpType::uc) && (verdict == Verdict::rnr || verdict == Verdict::access || !failed.has_receive)) {
    ++(verdict == Verdict::rnr ? shared_.counters.dropped_no_receive : shared_.counters.dropped_refused);
    pair.turn.pass();
    return false;
  }
  if (verdict == Verdict::rnr) {
    ++shared_.counters.receiver_not_ready;
    return false;
  }
  pair.current = {};
  if (failed.has_receive) fail_receive(pair, failed, answer);
  if (verdict == Verdict::access) {
    completer_.tell(pair, verbs::AsyncEventType::qp_access_err);
  } else if (!failed.has_receive) {
    completer_.tell(pair, verbs::AsyncEventType::qp_req_err);
  }
  completer_.enter_error(pair);
  return false;
}

void Executor::fail_receive(QueuePair& pair, const CurrentRequest& failed, const Answer& answer) {
  const WcStatus status = answer.verdict == Verdict::access    ? WcStatus::loc_access_err
                          : answer.verdict == Verdict::invalid ? WcStatus::loc_len_err
                                                               : WcStatus::loc_prot_err;
  completer_.complete_receive(pair, failed.receive_id,
                              {.status = status,
                               .opcode = failed.is(Wire::pair_send) ? WcOpcode::receive : WcOpcode::receive_write_imm,
                               .vendor_err = std::to_underlying(answer.cause)},
                              false);
}

Cause Executor::scatter(std::span<const verbs::Sge> sges, std::uint32_t domain, std::uint64_t offset,
                        std::span<const std::byte> bytes) {
  for (const verbs::Sge& sge : sges) {
    if (bytes.empty()) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::uint64_t step = std::min<std::uint64_t>(sge.length - offset, bytes.size());
    const Permit found = shared_.regions.locate(sge.lkey, domain, sge.addr + offset, step, verbs::access::local_write);
    if (found.is_refused()) return found.cause();
    if (!found.write(bytes.first(step))) return Cause::out_of_range;
    bytes = bytes.subspan(step);
    offset = 0;
  }
  return Cause::none;
}

}  // namespace fairlead::qp
