#pragma once
// The answers of the responder. An acknowledgement waits for the next pass, so that a request in the other direction
// can carry it. Answers for which the transports have no room are retried, in order for each peer.

#include <cstdint>
#include <vector>

#include "qp/answer.hpp"
#include "qp/executor.hpp"
#include "qp/pair_table.hpp"
#include "transport/retry_queue.hpp"

namespace fairlead::qp {

class Answers {
 public:
  Answers(Shared& shared, PairTable& pairs, Executor& executor) : shared_(shared), pairs_(pairs), executor_(executor) {
    owing_.reserve(PairTable::kMost);
  }

  /// Answers a request that was executed or has failed. Only RC requests get an answer.
  void conclude(QueuePair& pair, const wire::Envelope& envelope, const Answer& answer);
  /// Answers a repeated request. A read is read again; an atomic gets its earlier result.
  void repeat(QueuePair& pair, const wire::Envelope& envelope);
  /// Answers not_ready to a request that did not reach the right queue pair.
  void refuse(const link::Delivery& delivery, verbs::Cause cause);
  void send(QueuePair& pair, wire::RequestSequence sequence, const Answer& answer);

  void owe(QueuePair& pair) {
    if (std::exchange(pair.is_answer_owed, true)) return;
    owing_.push_back(pair.index);  // reserved in the constructor
  }
  /// Acknowledges all executed requests.
  void send_owed(QueuePair& pair) { send(pair, pair.turn.last(), {}); }
  /// Does this for all queue pairs. Returns true.
  bool send_all_owed();
  void retry();
  /// Drops the deferred answers to a lost peer.
  void drop(link::PeerHandle peer);
  /// Forgets a queue pair that is freed.
  void forget(const QueuePair& pair) { std::erase(owing_, pair.index); }

  /// While held, reads wait for their answers, and others to the same peer behind them. Acknowledgements do not wait.
  void hold(bool is_held) { is_held_ = is_held; }
  bool is_any_for(link::PeerHandle peer) const { return deferred_.has(peer); }
  bool is_any_owed() const { return !owing_.empty(); }
  /// Returns whether answers wait that may be sent.
  bool is_any_deferred() const { return !deferred_.is_empty() && !is_held_; }

 private:
  friend class PairsHandover;

  struct Deferred {
    wire::Envelope envelope;              // an answer, or a read request without an answer yet
    std::uint32_t pair = Arrival::kNone;  // of a read: index of the queue pair
    std::uint32_t incarnation = 0;
  };

  static AnswerRoute route_of(const QueuePair& pair) {
    return {.source = pair.number, .target = wire::encode(pair.peer_port())};
  }
  void submit(link::PeerHandle peer, const wire::Envelope& envelope);
  Status try_submit(link::PeerHandle peer, const wire::Envelope& envelope);
  void repeat_atomic(QueuePair& pair, const wire::Envelope& envelope);
  void refuse_repeat(QueuePair& pair, const wire::Envelope& envelope, const Judgement& judged);
  void answer_read(QueuePair& pair, const wire::Envelope& envelope);
  Status try_answer_read(QueuePair& pair, const wire::Envelope& envelope);
  Status try_again(link::PeerHandle peer, const Deferred& first);
  void defer(link::PeerHandle peer, const Deferred& answer);

  Shared& shared_;
  PairTable& pairs_;
  Executor& executor_;
  std::vector<std::uint32_t> owing_;  // indices of queue pairs; one may occur twice
  transport::RetryQueue<Deferred> deferred_;
  bool is_held_ = false;
};

}  // namespace fairlead::qp
