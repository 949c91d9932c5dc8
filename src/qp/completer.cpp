#include "qp/completer.hpp"

#include <utility>

#include <fairlead/verbs/device.hpp>

namespace fairlead::qp {

using verbs::Cause;
using verbs::QpState;
using verbs::WcStatus;

void Completer::complete_send(QueuePair& pair, const SendEntry& entry, WcStatus status, Cause cause) {
  const bool is_told = status != WcStatus::success || pair.plan.signals_all || entry.has(verbs::send_flags::signaled);
  pair.sends.count_unretired();
  if (!is_told) return;
  const std::uint32_t retires = pair.sends.take_unretired();
  const auto make = [&](void* place) {
    new (place) PairEvent{.completion = {.wr_id = entry.id,
                                         .status = status,
                                         .opcode = entry.traits().completion,
                                         .vendor_err = std::to_underlying(cause),
                                         .byte_len = static_cast<std::uint32_t>(entry.length),
                                         .qp_num = pair.number,
                                         .timestamp_ns = shared_.timestamp()},
                          .incarnation = pair.incarnation,
                          .retires = retires};
  };
  if (pair.plan.send_stream->produce(make, status != WcStatus::success)) [[likely]]
    return;
  account(pair).sends.add(pair.incarnation, retires);
  on_overrun(pair);
}

void Completer::complete_receive(QueuePair& pair, std::uint64_t id, verbs::WorkCompletion completion,
                                 bool is_solicited) {
  completion.wr_id = id;
  completion.qp_num = pair.number;
  completion.timestamp_ns = shared_.timestamp();
  const std::uint32_t outlives = pair.plan.end == PairEnd::target ? PairEvent::kOutlives : 0;
  const auto make = [&](void* place) {
    new (place) PairEvent{
        .completion = completion, .incarnation = pair.incarnation, .retires = retires_of_receive(pair) | outlives};
  };
  if (!pair.plan.receive_stream->produce(make, is_solicited || completion.status != WcStatus::success)) [[unlikely]]
    lose_receive(pair);
}

void Completer::lose_receive(QueuePair& pair) {
  account(pair).receives.add(pair.incarnation, retires_of_receive(pair) & ~PairEvent::kOfReceives);
  on_overrun(pair);
}

// The queue pair cannot continue, unless the owner has said for both completion queues that overruns do not matter.
void Completer::on_overrun(QueuePair& pair) {
  ++shared_.counters.completions_lost;
  const auto ignores = [](const CompletionStream* stream) {
    return stream == nullptr || stream->plan().ignores_overrun;
  };
  if (ignores(pair.plan.send_stream) && ignores(pair.plan.receive_stream)) return;
  if (pair.state() == QpState::err) return;
  tell(pair, verbs::AsyncEventType::qp_fatal);
  enter_error(pair);
}

void Completer::tell(const QueuePair& pair, verbs::AsyncEventType type) const {
  if (pair.plan.events != nullptr) pair.plan.events->produce({std::to_underlying(type), pair.plan.cookie});
}

void Completer::enter_error(QueuePair& pair) {
  if (pair.state() == QpState::err) return;
  pair.attributes.state = QpState::err;
  published_.publish(pair);
  pair.attributes.is_sq_draining = false;
  pair.patience.is_paused = pair.patience.is_lost = false;
  pair.patience.answer_due = pair.gap_due = base::kNever;
  arrivals_.drop_all(pair);
  flush_sends(pair);
  flush_receives(pair);
  if (pair.plan.has_shared_receives) tell(pair, verbs::AsyncEventType::qp_last_wqe_reached);
}

// A completion for which there is no room may end the queue pair, which flushes the rest before this loop continues.
void Completer::flush_sends(QueuePair& pair) {
  while (!pair.sends.is_empty()) complete_send(pair, pair.sends.retire(), WcStatus::wr_flush_err);
  pair.sends.note_flushed();
}

void Completer::flush_receive(QueuePair& pair, std::uint64_t id) {
  complete_receive(pair, id, {.status = WcStatus::wr_flush_err, .opcode = verbs::WcOpcode::receive}, false);
}

void Completer::flush_receives(QueuePair& pair) {
  if (std::exchange(pair.current.has_receive, false)) flush_receive(pair, pair.current.receive_id);
  pair.current = {};
  if (pair.plan.has_shared_receives) return;
  ReceiveQueue& queue = receives_[pair.receives];
  while (!queue.is_empty()) flush_receive(pair, queue.take().id);
}

void Completer::check_drained(QueuePair& pair) {
  if (pair.state() != QpState::sqd || pair.sends.is_any_begun()) return;
  pair.attributes.is_sq_draining = false;
  if (std::exchange(pair.wants_drained, false)) tell(pair, verbs::AsyncEventType::sq_drained);
}

}  // namespace fairlead::qp
