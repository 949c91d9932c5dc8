#pragma once
// Executes requests of the other end, one after the other: a whole one at once, or one in pieces between begin() and
// finish(). It does not ask where a request came from: network, shared memory or this engine.
//
// Nothing in an envelope is trusted: rights, keys and ranges are judged for each request, and looked up again for each
// piece. What is wrong with a request is told to the requester (RC) and ends both ends of the pair; UC drops it.

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "qp/answer.hpp"
#include "qp/completer.hpp"
#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"

namespace fairlead::qp {

/// Whether a request is allowed, and where what it names lies.
struct Judgement {
  Answer answer;
  Permit place;
  bool is_allowed() const { return answer.is_ack(); }
};

class Executor {
 public:
  Executor(Shared& shared, ReceiveQueues& receives, Completer& completer, PublishedTables& published)
      : shared_(shared), receives_(receives), completer_(completer), published_(published) {}

  /// Whether the requester may have this done, by the queue pair's rights and the region's, be it new or asked for
  /// again. What a send takes is looked at when it has its receive.
  Judgement judge(const QueuePair& pair, const wire::Envelope& envelope, std::uint64_t size) const;
  /// A peer that shows wrong keys is known for it.
  void note_wrong_key(const QueuePair& pair, const Judgement& judged);

  // Each of these is false if the request cannot go on; `answer` says why then.
  bool execute(QueuePair& pair, const wire::Envelope& envelope, std::span<const iovec> source, std::uint64_t size,
               Answer& answer);
  /// The case of nearly all: a send, not the first of all, with a receive of one piece that holds it. False: nothing
  /// has happened, and execute() knows all cases.
  bool execute_plain(QueuePair& pair, const wire::Envelope& envelope, std::span<const std::byte> bytes);
  bool begin(QueuePair& pair, const wire::Envelope& envelope, std::uint64_t size, Answer& answer);
  bool put(QueuePair& pair, std::uint64_t offset, std::span<const std::byte> bytes, Answer& answer);
  bool finish(QueuePair& pair, Answer& answer);

  /// The current message's receive goes with its queue. As the others; true if no message is coming now: the sender,
  /// if it sends again, finds no such queue.
  bool lose_receive(QueuePair& pair, Answer& answer);

  /// Communication is established by the first request.
  void note_heard(QueuePair& pair);
  /// The oldest receive becomes the current request's. False if there is none.
  bool take_receive(QueuePair& pair, std::uint32_t queue);
  /// Copies into pieces of registered memory, `offset` bytes from their start.
  verbs::Cause scatter(std::span<const verbs::Sge> sges, std::uint32_t domain, std::uint64_t offset,
                       std::span<const std::byte> bytes);

 private:
  std::uint32_t domain_of(const QueuePair& pair, const wire::Envelope& envelope) const;
  bool enter_shared(QueuePair& pair, const wire::Envelope& envelope);
  bool run_atomic(QueuePair& pair, const wire::Envelope& envelope, const Permit& place, Answer& answer);
  bool check_receive(QueuePair& pair, std::uint64_t size, Answer& answer);
  bool fail(QueuePair& pair, Verdict verdict, verbs::Cause cause, Answer& answer);
  void fail_receive(QueuePair& pair, const CurrentRequest& failed, const Answer& answer);

  Shared& shared_;
  ReceiveQueues& receives_;
  Completer& completer_;
  PublishedTables& published_;
};

}  // namespace fairlead::qp
