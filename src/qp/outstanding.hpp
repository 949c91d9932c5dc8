#pragma once
// Requests that were begun and are not complete: what answers, outcomes and lost peers mean for them. They are
// completed in order, or sent again.
//
// The transports deliver each message exactly once, so sending again is for other reasons: the responder had no receive
// posted (RNR), was not ready yet, had no room for what came early, or its answer never came though the transport says
// that the request arrived. A request sent again keeps its sequence; the responder recognises what it has executed.
//
// A reliable queue pair whose peer is lost: its requests fail when a device's timer would have given up, not before.
// Programs count on that time: who has sent more than the peer waits for has mostly ended itself by then. Until it
// comes nothing is sent (a process that comes back at that address has other queue pairs), nothing of the peer is
// believed, and what is posted waits behind. But as long as nothing of the peer has come, the session may have been
// that of a process which was at this address before: what was sent to it is sent again, to the one that is there now.

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

  /// What the other side says of a request that was sent, and of all before it.
  void take_answer(QueuePair& pair, RequestNumber number, const Answer& answer);
  /// Data of a read, the old value of an atomic.
  void place_result(QueuePair& pair, RequestNumber number, std::uint64_t offset, std::span<const std::byte> bytes);
  void finish_result(QueuePair& pair, RequestNumber number);
  void not_ready(QueuePair& pair, RequestNumber number, verbs::Cause cause);
  /// From there on all is sent again, after a pause.
  void go_back(QueuePair& pair, RequestNumber number, base::Duration pause);
  /// It has failed; what was sent after it does not count any more.
  void fail(QueuePair& pair, RequestNumber number, verbs::WcStatus status, verbs::Cause cause);
  void complete_in_order(QueuePair& pair);
  /// Nobody answers it: it is done when it has been handed over (UC, UD).
  void complete_unanswered(QueuePair& pair, SendEntry& entry) {
    entry.is_done = true;
    complete_in_order(pair);
  }

  /// The session has ended, and the pair has requests that have not.
  void lose_session(QueuePair& pair, Status status);
  /// The same; or there is no way to the peer.
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
