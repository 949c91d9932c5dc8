#pragma once
// Executes requests of the other end, one at a time: a whole one with execute(), or one in pieces between begin() and
// finish(). The source does not matter: network, shared memory or this engine.
//
// Nothing in an envelope is trusted: rights, keys and ranges are checked for each request, and looked up again for each
// piece. An invalid request on RC is answered with an error, and both ends of the pair enter ERR. On UC it is dropped;
// only if it fails in its receive does the receiving end enter ERR.

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "qp/answer.hpp"
#include "qp/completer.hpp"
#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"

namespace fairlead::qp {

/// The result of a check: whether a request is permitted, and the memory that it names.
struct Judgement {
  Answer answer;
  Permit place;
  bool is_allowed() const { return answer.is_ack(); }
};

class Executor {
 public:
  Executor(Shared& shared, ReceiveQueues& receives, Completer& completer, PublishedTables& published)
      : shared_(shared), receives_(receives), completer_(completer), published_(published) {}

  /// Checks a new or repeated request against the rights of the queue pair and of the region. The receive of a send is
  /// checked in begin().
  Judgement judge(const QueuePair& pair, const wire::Envelope& envelope, std::uint64_t size) const;
  /// Records an offence of the peer if the request had an unknown key.
  void note_wrong_key(const QueuePair& pair, const Judgement& judged);

  // Each of these returns false if the request cannot continue; `answer` is then set to the reason.
  bool execute(QueuePair& pair, const wire::Envelope& envelope, std::span<const iovec> source, std::uint64_t size,
               Answer& answer);
  /// The fast path: a send, not the first request of all, into a receive with one SGE that has room. Returns false if
  /// the request needs execute(); it has then changed no state of the queue pair.
  bool execute_plain(QueuePair& pair, const wire::Envelope& envelope, std::span<const std::byte> bytes);
  bool begin(QueuePair& pair, const wire::Envelope& envelope, std::uint64_t size, Answer& answer);
  bool put(QueuePair& pair, std::uint64_t offset, std::span<const std::byte> bytes, Answer& answer);
  bool finish(QueuePair& pair, Answer& answer);

  /// XRC: flushes the receive of the current message, because its queue is closed. Returns false, with `answer`, if the
  /// message is arriving now. Otherwise the requester may send it again; the responder then finds no such queue.
  bool lose_receive(QueuePair& pair, Answer& answer);

  /// Notes that a request has arrived. The first one in RTR raises the event "communication established".
  void note_heard(QueuePair& pair);
  /// Returns whether a receive is posted for the queue pair. Looks for more if none is.
  static bool has_receive(const QueuePair& pair, const ReceiveQueue& queue) {
    return !queue.is_empty() || look_for_receive(pair, queue);
  }
  /// Takes the oldest receive for the current request, unless it has one. Returns false if none is posted.
  bool take_receive(QueuePair& pair, std::uint32_t queue);
  /// Copies `bytes` to `sges`, `offset` bytes from their start. Returns the reason of a failure, or `none`.
  verbs::Cause scatter(std::span<const verbs::Sge> sges, std::uint32_t domain, std::uint64_t offset,
                       std::span<const std::byte> bytes);

 private:
  std::uint32_t domain_of(const QueuePair& pair, const wire::Envelope& envelope) const;
  bool enter_shared(QueuePair& pair, const wire::Envelope& envelope);
  static bool look_for_receive(const QueuePair& pair, const ReceiveQueue& queue);
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
