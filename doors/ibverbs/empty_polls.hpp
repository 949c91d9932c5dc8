#pragma once
// Yields for threads that poll a completion queue without finding anything. Programs poll in loops and never sleep. If
// two of them share a processor, each waits out the other's time slice: milliseconds for an answer that takes
// microseconds. A thread whose polls stay empty therefore yields now and then. It stops for a while if a yield takes
// long, because an unrelated program then uses the processor.

#include <sched.h>

#include <chrono>
#include <cstdint>

namespace fairlead::ibverbs {

class EmptyPolls {
 public:
  void poll_found() { count_ = 0; }

  void poll_was_empty() {
    if (++count_ < kSpins || count_ % kPollsPerYield != 0) [[likely]]
      return;
    give_way();
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr std::uint32_t kSpins =
      256;  // tens of microseconds: a peer on another processor has answered by then
  static constexpr std::uint32_t kPollsPerYield = 32;
  static constexpr auto kDear = std::chrono::microseconds(300);
  static constexpr auto kRest = std::chrono::milliseconds(20);

  void give_way() {
    const auto before = Clock::now();
    if (before < rests_until_) return;
    ::sched_yield();
    const auto after = Clock::now();
    if (after - before > kDear) rests_until_ = after + kRest;
  }

  std::uint32_t count_ = 0;
  Clock::time_point rests_until_{};
};

}  // namespace fairlead::ibverbs
