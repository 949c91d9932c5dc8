#pragma once
// The shared receive queues of one application at the host engine.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>

#include "embedded/embedded_core.hpp"
#include "host/pair_domains.hpp"
#include "host/pair_layout.hpp"
#include "host/pair_room.hpp"
#include "host/pairs_state.hpp"
#include "host/posted_receives.hpp"

namespace fairlead::host {

struct ServedQueue {
  qp::ReceiveQueueHandle handle;
  std::uint32_t slot = 0, generation = 0;
  std::uint32_t domain = 0;
  std::uint32_t depth = 0, pieces = 0;
  bool is_open = false, was_taken_from = false;
};

class ServedQueues {
 public:
  /// Total number of receives taken from each queue, for the application.
  using Taken = std::array<std::atomic<std::uint32_t>, kReceiveQueuesMax>;

  // Flag in cookies of the engine's notices, besides the slot.
  static constexpr std::uint64_t kCookie = 1ULL << 32;

  ServedQueues(embedded::EmbeddedPairs& core, PairRoom& room, PairDomains& domains, PostedReceives& receives,
               Taken& taken)
      : core_(core), room_(room), domains_(domains), receives_(receives), taken_(taken) {}

  Result<PairAnswer> open(const PairCall& call, qp::NoticeStream* notices);
  Result<PairAnswer> close(const PairCall& call);
  Result<PairAnswer> change(const PairCall& call);
  Result<PairAnswer> facts(const PairCall& call);
  void close_all();

  // For the next program in this process.
  void save(ApplicationPairsState& state) const;
  Result<> restore(const ApplicationPairsState& state, qp::NoticeStream* notices);

  /// Returns null if it is closed or has another generation.
  ServedQueue* find(std::uint32_t slot, std::uint32_t generation);
  /// Returns null if it is closed.
  const ServedQueue* find(std::uint32_t slot) const;

  /// Records that a receive of the queue has completed. tell_taken() then publishes the counts of all such queues.
  void take_from(std::uint32_t slot);
  void tell_taken();

 private:
  void tell_taken(const ServedQueue& queue);

  embedded::EmbeddedPairs& core_;
  PairRoom& room_;
  PairDomains& domains_;
  PostedReceives& receives_;
  Taken& taken_;
  std::deque<ServedQueue> queues_;
  std::uint32_t taken_from_ = 0;  // queues with was_taken_from
};

}  // namespace fairlead::host
