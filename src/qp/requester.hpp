#pragma once
// The requester's half of queue pairs: what is posted is sent in order, by the way that suits: as a message, carried
// out by ourselves, or executed here if both ends are. What comes back is Outstanding's.

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
  /// Bytes, and the rest of one request, that whoever has the engine's lock copies before others have it.
  static constexpr std::uint64_t kCopiedInTurn = 4ULL << 20;

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

  /// 0, or a positive errno. Sent by pump().
  int post(QueuePair& pair, const verbs::SendRequest& request);
  /// Sends what may be sent now.
  void pump(QueuePair& pair);
  /// A pause has ended, or an answer did not come.
  void end_wait(QueuePair& pair);
  /// What is copied here from now on counts towards kCopiedInTurn; what goes beyond it waits for the next turn.
  void begin_turn() { copied_ = 0; }
  /// What the transports had no room for, or the turn before.
  void retry_stalled();
  void forget(const QueuePair& pair) { std::erase(stalled_, pair.index); }
  bool is_any_stalled() const { return !stalled_.empty(); }
  bool has_copied_its_turn() const { return copied_ >= kCopiedInTurn; }

  void take_answer(const link::Delivery& delivery);
  /// A later chunk of an answer.
  void take_answer_chunk(std::uint32_t slot, const link::Delivery& delivery);
  /// An acknowledgement that came with a request of the other side, which is known to be connected to us.
  void take_carried_answer(QueuePair& pair, const wire::Envelope& envelope);
  /// What the transports say of a message.
  void end_outcome(const link::Outcome& outcome);

 private:
  void pump_more(QueuePair& pair) {
    if (pair.sends.next() != pair.sends.tail()) pump(pair);
  }
  // Each is true if the next one may be tried.
  bool start(QueuePair& pair, RequestNumber number);
  bool start_short(QueuePair& pair, RequestNumber number);
  bool start_connected(QueuePair& pair, RequestNumber number, const SendEntry& entry);
  bool start_datagram(QueuePair& pair, RequestNumber number);
  bool start_of_window(QueuePair& pair, RequestNumber number);
  bool start_local(QueuePair& pair, RequestNumber number);
  bool execute_local(QueuePair& pair, RequestNumber number, QueuePair& responder, const GatherList& list);
  void place_local_result(QueuePair& pair, RequestNumber number, const QueuePair& responder,
                          const wire::Envelope& envelope);
  bool start_remote(QueuePair& pair, RequestNumber number);
  bool refuse(QueuePair& pair, RequestNumber number, verbs::WcStatus status, verbs::Cause cause);
  bool wait_for_room(QueuePair& pair);

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
  std::vector<std::uint32_t> stalled_;  // indices
  std::uint64_t copied_ = 0;            // by ourselves, in this turn
};

/// What the other side has to know of a request.
wire::Envelope envelope_of(QueuePair& pair, RequestNumber number);

}  // namespace fairlead::qp
