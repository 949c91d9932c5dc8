#pragma once
// The responder's half of queue pairs. It executes requests one at a time, in sequence. Chunks of the current request
// are placed at once, in any order. Later requests wait for their turn; earlier ones are duplicates.

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

  /// Returns the queue pair of a request, if the peer may send to it. Else refuses or drops the request, and returns
  /// null.
  QueuePair* admit(const link::Delivery& delivery);
  /// Takes a request that was admitted, or its first chunk.
  void take(QueuePair& pair, const link::Delivery& delivery);
  /// Takes a later chunk of a request.
  void take_chunk(std::uint32_t slot, const link::Delivery& delivery);
  /// Handles the loss of the sender of a partly arrived request.
  void end_arrival(std::uint32_t slot);
  /// XRC: handles the end of the shared receive queue that provided the current message's receive.
  void lose_receive(QueuePair& pair);
  /// UC: gives up the missing requests.
  void end_gap(QueuePair& pair);

 private:
  static constexpr base::Duration kGapPatience = std::chrono::seconds(1);  // UC; retransmissions arrive sooner

  void take_duplicate(QueuePair& pair, const link::Delivery& delivery);
  void take_early(QueuePair& pair, const link::Delivery& delivery);
  void take_whole(QueuePair& pair, const link::Delivery& delivery);
  void take_in_place(QueuePair& pair, const link::Delivery& delivery);
  void execute(QueuePair& pair, const link::Delivery& delivery);
  void take_first_chunk(QueuePair& pair, const link::Delivery& delivery);
  void put_chunk(QueuePair& pair, const link::Delivery& delivery);
  /// Executes requests whose turn has come.
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
