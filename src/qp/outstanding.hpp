#pragma once
// The requests that were sent and are not complete. This class applies answers, outcomes and lost peers to them: it
// completes them in order, or has them sent again.
//
// The transports deliver each message exactly once, so a request is sent again for other reasons. The responder had no
// receive posted (RNR), was not ready, or had no room for an early request. Or the request arrived, but no answer to
// it. A request that is sent again keeps its sequence, and the responder recognises what it has executed.
//
// If the peer of a reliable queue pair is lost, its requests fail when a device's timer would have expired, not before.
// Programs rely on that time: those that have sent more than the peer waits for have mostly ended by then. Until then
// nothing is sent, because a process that restarts at the address has other queue pairs. Answers are ignored, and new
// requests wait. But if nothing has arrived from the peer yet, the session may have been that of an earlier process at
// this address. Then the requests are sent again, to the current process.

#include <cstddef>
#include <span>

#include "qp/answer.hpp"
#include "qp/completer.hpp"
#include "qp/executor.hpp"

namespace fairlead::qp {

class Outstanding {
 public:
  Outstanding(Shared& shared, Completer& completer, Executor& executor)
      : shared_(shared), completer_(completer), executor_(executor) {}

  /// Applies an answer to a request that was sent, and to all before it.
  void take_answer(QueuePair& pair, RequestNumber number, const Answer& answer);
  /// Places data of a read, or the old value of an atomic, in the memory of the request.
  void place_result(QueuePair& pair, RequestNumber number, std::uint64_t offset, std::span<const std::byte> bytes);
  void finish_result(QueuePair& pair, RequestNumber number);
  void not_ready(QueuePair& pair, RequestNumber number, verbs::Cause cause);
  /// Has all requests from `number` on sent again, after a pause.
  void go_back(QueuePair& pair, RequestNumber number, base::Duration pause);
  /// Marks the request as failed. Requests that were sent after it count as not sent.
  void fail(QueuePair& pair, RequestNumber number, verbs::WcStatus status, verbs::Cause cause);
  void complete_in_order(QueuePair& pair);
  /// Completes a request that has no answer (UC, UD) when the transport has taken it.
  void complete_unanswered(QueuePair& pair, SendEntry& entry) {
    entry.is_done = true;
    complete_in_order(pair);
  }

  /// Handles the end of a session while the queue pair has pending requests.
  void lose_session(QueuePair& pair, Status status);
  /// Handles a lost peer, or one that cannot be reached: the requests fail when the time above is over.
  void lose(QueuePair& pair, Status status);
  void end_lost(QueuePair& pair);

 private:
  void refuse(QueuePair& pair, RequestNumber number, const Answer& answer);
  void wait_for_receive(QueuePair& pair, RequestNumber number, const Answer& answer);
  void acknowledge(QueuePair& pair, RequestNumber end);
  bool is_head_done(QueuePair& pair);
  void fail_head(QueuePair& pair);

  Shared& shared_;
  Completer& completer_;
  Executor& executor_;
};

}  // namespace fairlead::qp
