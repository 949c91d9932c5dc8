#pragma once
// The responder's half of queue pairs: requests are executed one after the other, in the order of their sequence. A
// chunk of the current one is placed at once, in whatever order; one of a later request waits for its turn; those
// before are duplicates.

#include <cstdint>
#include <span>

#include "qp/answers.hpp"
#include "qp/executor.hpp"
#include "qp/pair_table.hpp"
#include "qp/reorder_buffer.hpp"

namespace fairlead::qp {

class Responder {
 public:
  Responder(Shared& shared, PairTable& pairs, ReorderBuffer& arrivals, Executor& executor, Answers& answers)
      : shared_(shared), pairs_(pairs), arrivals_(arrivals), executor_(executor), answers_(answers) {}

  /// Whose request it is, if this peer may ask there at all; else null, and it was refused.
  QueuePair* admit(const link::Delivery& delivery);
  /// A whole request that was admitted, or its first chunk.
  void take(QueuePair& pair, const link::Delivery& delivery);
  /// A later chunk of a request.
  void take_chunk(std::uint32_t slot, const link::Delivery& delivery);
  /// The sender of a request that had begun to arrive is lost.
  void end_arrival(std::uint32_t slot);
  /// XRC: the queue goes that the current message has its receive from.
  void lose_receive(QueuePair& pair);
  /// UC: what is missing is not waited for any longer.
  void end_gap(QueuePair& pair);

 private:
  static constexpr base::Duration kGapPatience = std::chrono::seconds(1);  // UC: what the link repairs comes earlier

  void take_duplicate(QueuePair& pair, const link::Delivery& delivery);
  void take_early(QueuePair& pair, const link::Delivery& delivery);
  void take_whole(QueuePair& pair, const link::Delivery& delivery);
  void execute(QueuePair& pair, const link::Delivery& delivery);
  void take_first_chunk(QueuePair& pair, const link::Delivery& delivery);
  void put_chunk(QueuePair& pair, const link::Delivery& delivery);
  /// Executes what has waited for its turn.
  void drain(QueuePair& pair);
  bool run_next(QueuePair& pair);
  bool execute_held(QueuePair& pair, std::uint32_t slot);
  void ask_for_dropped(QueuePair& pair);
  void ask_to_go_back(QueuePair& pair);

  Shared& shared_;
  PairTable& pairs_;
  ReorderBuffer& arrivals_;
  Executor& executor_;
  Answers& answers_;
};

}  // namespace fairlead::qp
