#pragma once
// Hands the queue pairs of an engine over to the next program in this process: saves what outlives this program
// (pairs_state.hpp), and restores it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fairlead/error.hpp>

#include "qp/pairs_state.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::qp {

class PairsHandover {
 public:
  /// `pairs` must outlive this object.
  explicit PairsHandover(QueuePairs& pairs) : pairs_(pairs) {}

  /// Returns `again` if a message is in flight or a withdrawal is open, `not_supported` if a queue pair or a region is
  /// of a kind that cannot be handed over.
  Result<PairsState> save();

  /// Restores into queue pairs that were never used. Names of peers are below `peers_max`. Afterwards each queue pair
  /// and each shared receive queue needs its notices, and each region its memory.
  Result<> restore(const PairsState& saved, base::Instant now, std::uint32_t peers_max);
  /// Returns the queue pair's completion stream; null if there is no such queue pair, or it has its notices already.
  CompletionStream* give_notices(PairHandle pair, NoticeStream* notices, std::uint64_t cookie);
  /// Returns false if there is no such receive queue, or it has its notices already.
  bool give_notices(ReceiveQueueHandle queue, NoticeStream* notices, std::uint64_t cookie);
  /// Returns false if there is no such region, or it has its memory already.
  bool give_memory(std::uint32_t key, std::byte* base, std::uint64_t length);
  /// Binds the windows, when all regions have their memory. Returns an error if anything is missing.
  Result<> finish(const PairsState& saved);

  /// Returns whether a message of that size is arriving under that name.
  bool is_arrival(std::uint64_t target, std::uint64_t size);

 private:
  static constexpr std::uint32_t kNone = Arrival::kNone;

  // Saving. Each returns why it is impossible; an empty text if it is possible.
  Result<> check_saving();
  RegionsState save_regions() const;
  void save_arrivals(PairsState& saved);
  ReceiveQueueState save_queue(std::uint32_t slot, const ReceiveQueue& queue) const;
  static SendQueueState save_sends(SendQueue& sends);
  PairState save_pair(QueuePair& pair, std::vector<const CompletionStream*>& streams);

  // Restoring.
  Result<> restore_regions(const RegionsState& saved);
  Result<> restore_table(const PairsState& saved);
  Result<> restore_queue(const ReceiveQueueState& saved);
  Result<> restore_arrival(const ArrivalState& saved);
  Result<> restore_pair(const PairState& saved, base::Instant now, std::uint32_t peers_max);
  static bool restore_sends(const SendQueueState& saved, const PairPlan& plan, SendQueue& sends);
  bool restore_chain(const PairState& saved, QueuePair& pair);
  bool is_sound(const PairState& saved) const;
  bool is_sound(const CurrentRequest& current, const PairState& saved, const ReceiveQueue& queue);
  bool are_arrivals_sound(const PairsState& saved);
  Result<> restore_answers(const PairsState& saved, base::Instant now, std::uint32_t peers_max);

  QueuePairs& pairs_;
};

}  // namespace fairlead::qp
