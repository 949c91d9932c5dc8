#pragma once
// The requester's half of queue pairs. It sends posted requests in order: as a message, by access to a local peer's
// memory, or by execution in this engine if both ends are here. Outstanding handles the results.

#include <cstdint>
#include <span>
#include <vector>

#include "qp/answers.hpp"
#include "qp/datagrams.hpp"
#include "qp/group_datagrams.hpp"
#include "qp/one_sided.hpp"
#include "qp/outstanding.hpp"
#include "qp/pair_table.hpp"

namespace fairlead::qp {

class Requester {
 public:
  struct Parts {
    PairTable& pairs;
    ReorderBuffer& arrivals;
    Completer& completer;
    Executor& executor;
    Answers& answers;
    Outstanding& outstanding;
    OneSided& one_sided;
    Datagrams& datagrams;
    GroupDatagrams& groups;
  };
  Requester(Shared& shared, const Parts& parts) : shared_(shared), parts_(parts) { stalled_.reserve(PairTable::kMost); }

  /// Queues a request, which pump() sends. Returns 0 or a positive errno: EINVAL for a bad request or state, ENOMEM if
  /// the queue is full.
  int post(QueuePair& pair, const verbs::SendRequest& request);
  /// Sends the requests that may be sent now.
  void pump(QueuePair& pair);
  /// Handles an expired timer: a pause has ended, or an answer did not arrive.
  void end_wait(QueuePair& pair);
  /// Retries requests for which the transports, or the last turn, had no room.
  void retry_stalled();
  void forget(QueuePair& pair) {
    end_stall(pair);
    std::erase(stalled_, pair.index);
  }
  bool is_any_stalled() const { return !stalled_.empty(); }
  /// Sends nothing of this queue pair until retry_stalled().
  void hold(QueuePair& pair) { wait_for_turn(pair); }
  /// Takes back long requests that wait in the transports. They are sent again from the start.
  void recall_waiting();
  /// Whether something waits for the next turn alone.
  bool awaits_turn() const { return awaiting_turn_ != 0; }

  void take_answer(const link::Delivery& delivery);
  /// Takes a later chunk of an answer.
  void take_answer_chunk(std::uint32_t slot, const link::Delivery& delivery);
  /// Takes an acknowledgement that a request carries. The sender is known to be connected to this queue pair.
  void take_carried_answer(QueuePair& pair, const wire::Envelope& envelope);
  /// Handles the outcome of a message.
  void end_outcome(const link::Outcome& outcome);

 private:
  void pump_more(QueuePair& pair) {
    if (pair.sends.next() != pair.sends.tail()) pump(pair);
  }
  // Each of these returns true if the next request may be tried.
  bool start(QueuePair& pair, RequestNumber number);
  bool start_short(QueuePair& pair, RequestNumber number);
  bool start_connected(QueuePair& pair, RequestNumber number, const SendEntry& entry);
  bool start_datagram(QueuePair& pair, RequestNumber number);
  bool start_of_window(QueuePair& pair, RequestNumber number);
  bool start_local(QueuePair& pair, RequestNumber number);
  bool execute_local(QueuePair& pair, RequestNumber number, QueuePair& responder, const GatherList& list);
  bool put_local(QueuePair& pair, RequestNumber number, QueuePair& responder, const GatherList& list, Answer& answer);
  void place_local_result(QueuePair& pair, RequestNumber number, const Permit& from);
  bool start_remote(QueuePair& pair, RequestNumber number);
  bool refuse(QueuePair& pair, RequestNumber number, verbs::WcStatus status, verbs::Cause cause);
  bool wait_for_room(QueuePair& pair);
  bool wait_for_turn(QueuePair& pair);
  bool put_off(QueuePair& pair, RequestNumber number);
  void end_stall(QueuePair& pair);

  Status submit(QueuePair& pair, RequestNumber number, link::Outgoing& message, const GatherList& list);
  void note_sent(QueuePair& pair, SendEntry& entry) {
    ++shared_.counters.requests_sent;
    ++entry.flights;
    if (!pair.sends.is_any_out()) pair.await(shared_.now);
    pair.sends.sent_message(entry);
  }
  void take_result(QueuePair& pair, RequestNumber number, const Answer& answer, const link::Delivery& delivery);
  void finish_result(QueuePair& pair, RequestNumber number, const Answer& answer);
  void end_request(QueuePair& pair, RequestNumber number, Status status);

  Shared& shared_;
  Parts parts_;
  std::vector<std::uint32_t> stalled_;  // indices of queue pairs
  std::uint32_t awaiting_turn_ = 0;     // of these, those that wait for the next turn
};

/// Returns the envelope of a request.
wire::Envelope envelope_of(QueuePair& pair, RequestNumber number);

}  // namespace fairlead::qp
