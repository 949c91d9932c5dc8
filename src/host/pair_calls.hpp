#pragma once
// Calls to the host engine about queue pairs. They go through the ring, after earlier posts, and are answered in the
// shared page. Several threads may make calls; each waits for its own answer.

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

  /// Makes a call and waits for the answer. A negative answer becomes its error. Returns `restarted` only if the host
  /// engine has ended: while it is stopped, the caller waits, because it may still use the memory concerned.
  Result<PairAnswer> make(PairCall::Kind kind, PairCall call, std::span<const MemoryPiece> pieces = {});
  /// Makes a call without an answer. The caller holds the ring's mutex. Returns false if the ring is full.
  bool tell(PairCall::Kind kind, const PairCall& call) { return push(kind, call, {}, kNoSlot); }

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
