#pragma once
// Completes requests and receives, each once and in order, with an event in a completion queue. If that queue is full,
// the event is lost, and the queue pair enters ERR unless its completion queues ignore overruns. An error flushes all
// outstanding work requests.

#include <cstdint>
#include <memory>

#include "qp/completion_stream.hpp"
#include "qp/published_tables.hpp"
#include "qp/queue_pair.hpp"
#include "qp/reorder_buffer.hpp"
#include "qp/shared.hpp"

namespace fairlead::qp {

class Completer {
 public:
  Completer(Shared& shared, ReceiveQueues& receives, ReorderBuffer& arrivals, PublishedTables& published,
            std::uint32_t pairs_max)
      : shared_(shared),
        receives_(receives),
        arrivals_(arrivals),
        published_(published),
        accounts_(std::make_unique<PairAccount[]>(pairs_max)) {}

  PairAccount* accounts() { return accounts_.get(); }
  PairAccount& account(const QueuePair& pair) { return accounts_[pair.index]; }

  void complete_send(QueuePair& pair, const SendEntry& entry, verbs::WcStatus status = verbs::WcStatus::success,
                     verbs::Cause cause = verbs::Cause::none);
  void complete_receive(QueuePair& pair, std::uint64_t id, verbs::WorkCompletion completion, bool is_solicited);
  /// The same for a successful send without immediate data.
  void complete_plain_receive(QueuePair& pair, std::uint64_t id, std::size_t bytes, bool is_solicited) {
    const auto make = [&](void* place) {
      new (place) PairEvent{.completion = {.wr_id = id,
                                           .opcode = verbs::WcOpcode::receive,
                                           .byte_len = static_cast<std::uint32_t>(bytes),
                                           .qp_num = pair.number,
                                           .timestamp_ns = shared_.timestamp()},
                            .incarnation = pair.incarnation,
                            .retires = retires_of_receive(pair)};
    };
    if (!pair.plan.receive_stream->produce(make, is_solicited)) [[unlikely]]
      lose_receive(pair);
  }
  void flush_receive(QueuePair& pair, std::uint64_t id);
  void flush_sends(QueuePair& pair);

  void tell(const QueuePair& pair, verbs::AsyncEventType type) const;
  /// Moves the queue pair to ERR and flushes all outstanding work requests. Those posted later are flushed, too.
  void enter_error(QueuePair& pair);
  /// In SQD: ends draining once all requests that were begun have completed, and raises the event if it was requested.
  void check_drained(QueuePair& pair);

 private:
  static std::uint32_t retires_of_receive(const QueuePair& pair) {
    return PairEvent::kOfReceives | (pair.plan.has_shared_receives ? 0 : 1);
  }
  void flush_receives(QueuePair& pair);
  void lose_receive(QueuePair& pair);
  void on_overrun(QueuePair& pair);

  Shared& shared_;
  ReceiveQueues& receives_;
  ReorderBuffer& arrivals_;
  PublishedTables& published_;
  std::unique_ptr<PairAccount[]> accounts_;
};

}  // namespace fairlead::qp
