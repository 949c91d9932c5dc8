#include "qp/outstanding.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace fairlead::qp {
namespace {

using verbs::Cause;
using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;

constexpr base::Duration kNotReadyPauseFirst = std::chrono::milliseconds(1);
constexpr base::Duration kNotReadyPauseMost = std::chrono::milliseconds(50);
constexpr base::Duration kGoBackPause = std::chrono::microseconds(100);
constexpr base::Duration kLossPatienceMost = std::chrono::seconds(60);
constexpr std::uint8_t kRnrForEver = 7;

// IBTA's codes of the RNR timer, in microseconds.
constexpr std::array<std::uint32_t, 32> kRnrMicroseconds{
    655'360, 10,     20,     30,     40,     60,      80,      120,     160,     240,    320,
    480,     640,    960,    1'280,  1'920,  2'560,   3'840,   5'120,   7'680,   10'240, 15'360,
    20'480,  30'720, 40'960, 61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520};

/// The transport through shared memory refuses when a connection has ended, and finds nobody there afterwards.
Cause cause_of(Status status, const QueuePair& pair) {
  const bool is_shared = shm::Transport::has(pair.route.peer);
  switch (status) {
    case Status::unreachable:
      return is_shared && pair.route.is_proven ? Cause::peer_ended : Cause::never_heard;
    case Status::restarted:
      return Cause::peer_restarted;
    case Status::refused:
      return is_shared ? Cause::peer_ended : Cause::port_unreachable;
    default:
      return Cause::no_ack;
  }
}

WcStatus status_of(Verdict verdict) {
  if (verdict == Verdict::invalid) return WcStatus::rem_inv_req_err;
  return verdict == Verdict::access ? WcStatus::rem_access_err : WcStatus::rem_op_err;
}

/// Returns when a device would give up its retries. Without a timeout it never would, and the result is `now`: no wait.
base::Instant end_of_patience(const QueuePair& pair, base::Instant now) {
  const Patience& patience = pair.patience;
  if (pair.attributes.timeout == 0) return now;
  base::Instant since = patience.waits_since;
  if (patience.not_ready_since != base::kNever) {
    since = patience.not_ready_since;
  } else if (!pair.sends.is_any_out()) {
    since = patience.is_paused ? std::max(now, patience.resume_at) : now;  // the time at which it would be sent
  }
  return since + std::min(pair.answer_patience() * (patience.retries_left + 1), kLossPatienceMost);
}

}  // namespace

// Answers ------------------------------------------------------------------------------------------------------------

void Outstanding::take_answer(QueuePair& pair, RequestNumber number, const Answer& answer) {
  if (answer.is_ack()) [[likely]] {
    acknowledge(pair, number + 1);
  } else {
    refuse(pair, number, answer);
  }
  complete_in_order(pair);
}

void Outstanding::refuse(QueuePair& pair, RequestNumber number, const Answer& answer) {
  if (answer.verdict != Verdict::not_ready) acknowledge(pair, number);
  if (!pair.sends.is_out(number)) return;
  switch (answer.verdict) {
    case Verdict::ack:
      break;
    case Verdict::rnr:
      return wait_for_receive(pair, number, answer);
    case Verdict::invalid:
    case Verdict::access:
    case Verdict::operation:
      return fail(pair, number, status_of(answer.verdict), answer.cause);
    case Verdict::not_ready:
      return not_ready(pair, number, answer.cause);
    case Verdict::go_back:
      return go_back(pair, number, kGoBackPause);
  }
}

void Outstanding::wait_for_receive(QueuePair& pair, RequestNumber number, const Answer& answer) {
  if (pair.attributes.rnr_retry != kRnrForEver) {
    if (pair.patience.rnr_left == 0) return fail(pair, number, WcStatus::rnr_retry_exc_err, Cause::no_receive_posted);
    --pair.patience.rnr_left;
  }
  go_back(pair, number, std::chrono::microseconds(kRnrMicroseconds[answer.rnr_code]));
}

/// All requests before `end` have been executed.
void Outstanding::acknowledge(QueuePair& pair, RequestNumber end) {
  if (!pair.sends.acknowledge(end)) return;
  pair.patience.begin(pair.attributes);
  pair.patience.not_ready_since = base::kNever;
  pair.await(shared_.now);
}

void Outstanding::place_result(QueuePair& pair, RequestNumber number, std::uint64_t offset,
                               std::span<const std::byte> bytes) {
  const Cause cause = executor_.scatter(pair.sends.sges_of(number), pair.plan.domain, offset, bytes);
  if (cause != Cause::none) fail(pair, number, WcStatus::loc_prot_err, cause);
}

void Outstanding::finish_result(QueuePair& pair, RequestNumber number) {
  SendEntry& entry = pair.sends[number];
  if (entry.has_failed()) return;
  pair.sends.finish_result(entry);
  pair.await(shared_.now);
}

void Outstanding::fail(QueuePair& pair, RequestNumber number, WcStatus status, Cause cause) {
  go_back(pair, number, {});
  pair.sends[number].fail(status, cause);
}

void Outstanding::go_back(QueuePair& pair, RequestNumber number, base::Duration pause) {
  shared_.counters.requests_repeated += pair.sends.go_back(number);
  pair.patience.is_paused = pause > base::Duration::zero();
  pair.patience.resume_at = shared_.now + pause;
  shared_.timers.set(pair.timer, pair.due());
}

/// The other end is not ready. The request is sent again after short pauses, until retries and timeout are used up.
void Outstanding::not_ready(QueuePair& pair, RequestNumber number, Cause cause) {
  Patience& patience = pair.patience;
  if (patience.not_ready_since == base::kNever) {
    patience.not_ready_since = shared_.now;
    patience.not_ready_pause = kNotReadyPauseFirst;
  }
  const auto most = pair.answer_patience() * (pair.attributes.retry_cnt + 1);
  if (pair.attributes.timeout != 0 && shared_.now - patience.not_ready_since >= most) {
    fail(pair, number, WcStatus::retry_exc_err, cause);
    return complete_in_order(pair);
  }
  go_back(pair, number, patience.not_ready_pause);
  patience.not_ready_pause = std::min(2 * patience.not_ready_pause, kNotReadyPauseMost);
}

// Completing ---------------------------------------------------------------------------------------------------------

bool Outstanding::is_head_done(QueuePair& pair) {
  const RequestNumber head = pair.sends.head();
  const SendEntry& entry = pair.sends[head];
  const bool is_acknowledged = pair.is(QpType::rc) && !entry.traits().has_result();
  return is_acknowledged ? pair.sends.is_acked(head) : entry.is_done;
}

void Outstanding::complete_in_order(QueuePair& pair) {
  while (!pair.sends.is_empty()) {
    if (pair.sends[pair.sends.head()].has_failed()) [[unlikely]]
      return fail_head(pair);
    if (!pair.sends.is_any_out() || !is_head_done(pair)) break;
    completer_.complete_send(pair, pair.sends.retire());
    if (pair.state() == QpState::err) [[unlikely]]
      return;  // the completion queue was full
  }
  if (pair.state() == QpState::sqd) [[unlikely]]
    completer_.check_drained(pair);
}

void Outstanding::fail_head(QueuePair& pair) {
  const SendEntry& entry = pair.sends.retire();
  completer_.complete_send(pair, entry, entry.status, entry.cause);
  if (pair.is(QpType::rc)) return completer_.enter_error(pair);
  if (pair.state() == QpState::err) return;
  pair.attributes.state = QpState::sqe;
  completer_.flush_sends(pair);
}

// A lost peer --------------------------------------------------------------------------------------------------------

void Outstanding::lose_session(QueuePair& pair, Status status) {
  const bool is_patient = end_of_patience(pair, shared_.now) > shared_.now;
  if (pair.route.is_proven || status == Status::unreachable || !is_patient) return lose(pair, status);
  not_ready(pair, pair.sends.head(), cause_of(status, pair));
}

void Outstanding::lose(QueuePair& pair, Status status) {
  if (pair.patience.is_lost) return;
  const base::Instant at = end_of_patience(pair, shared_.now);
  pair.patience.is_lost = true;
  pair.patience.loss = cause_of(status, pair);
  if (at <= shared_.now) return end_lost(pair);
  pair.sends.begin_head();
  pair.patience.pause(at);
  shared_.timers.set(pair.timer, pair.due());
}

void Outstanding::end_lost(QueuePair& pair) {
  pair.patience.is_lost = false;
  fail(pair, pair.sends.head(), WcStatus::retry_exc_err, pair.patience.loss);
  complete_in_order(pair);
}

}  // namespace fairlead::qp
