#pragma once
// What goes back to requesters. An acknowledgement waits for the next pass: until then it may travel with what the
// application answers. What the transports have no room for is tried again, in order.

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

  /// A request was executed, or not, as the answer says (RC; others are told nothing).
  void conclude(QueuePair& pair, const wire::Envelope& envelope, const Answer& answer);
  /// A request that is over came again: reads are read again, atomics answer what they answered.
  void repeat(QueuePair& pair, const wire::Envelope& envelope);
  /// To a requester that does not speak to the right queue pair.
  void refuse(const link::Delivery& delivery, verbs::Cause cause);
  void send(QueuePair& pair, wire::RequestSequence sequence, const Answer& answer);

  void owe(QueuePair& pair) {
    if (std::exchange(pair.is_answer_owed, true)) return;
    owing_.push_back(pair.index);  // within what was reserved
  }
  /// The acknowledgement of all that is over.
  void send_owed(QueuePair& pair) { send(pair, pair.turn.last(), {}); }
  /// Of all pairs. True.
  bool send_all_owed();
  void retry();
  /// A peer is lost.
  void drop(link::PeerHandle peer);
  /// The pair is gone.
  void forget(const QueuePair& pair) { std::erase(owing_, pair.index); }

  bool is_any_owed() const { return !owing_.empty(); }
  bool is_any_deferred() const { return !deferred_.is_empty(); }

 private:
  struct Deferred {
    wire::Envelope envelope;              // the answer, or the read to be answered
    std::uint32_t pair = Arrival::kNone;  // of a read
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
  std::vector<std::uint32_t> owing_;  // indices
  transport::RetryQueue<Deferred> deferred_;
};

}  // namespace fairlead::qp
