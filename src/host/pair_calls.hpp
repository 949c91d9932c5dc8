#pragma once
// Calls to the host engine about queue pairs: asked through the ring, so that what was posted before comes before, and
// answered in the shared page. Several threads may be at it, each waits for its own.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>

#include <fairlead/error.hpp>

#include "base/short_lock.hpp"
#include "host/pair_ring.hpp"

namespace fairlead::host {

class PairCalls {
 public:
  static constexpr std::uint16_t kNoSlot = 0xFFFF;

  /// `mutex` guards the ring.
  PairCalls(HostConnection& host, PairPage& page, PairRing& ring, base::ShortLock& mutex)
      : host_(host), page_(page), ring_(ring), mutex_(mutex) {}

  /// Waits for the answer; one that says no becomes the error that it tells. restarted: the host engine has ended.
  Result<PairAnswer> make(PairCall::Kind kind, PairCall call, std::span<const MemoryPiece> pieces = {});
  /// Without an answer. The caller holds the mutex of the ring.
  void tell(PairCall::Kind kind, const PairCall& call) { push(kind, call, {}, kNoSlot); }

  static Error has_ended();

 private:
  bool push(PairCall::Kind kind, const PairCall& call, std::span<const MemoryPiece> pieces, std::uint16_t slot);
  std::uint16_t take_slot();
  void give_back(std::uint16_t slot);

  HostConnection& host_;
  PairPage& page_;
  PairRing& ring_;
  base::ShortLock& mutex_;
  std::mutex slots_mutex_;
  std::condition_variable slot_came_free_;
  std::array<bool, kPairCallsMax> is_taken_{};
  std::uint64_t numbers_ = 0;
};

}  // namespace fairlead::host
