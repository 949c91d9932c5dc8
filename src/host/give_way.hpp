#pragma once
// Lets other threads run after an application's poller has polled many times in vain.

#include <chrono>
#include <mutex>
#include <thread>

#include "base/short_lock.hpp"
#include "queue/idle_polls.hpp"
#include "queue/yield.hpp"

namespace fairlead::host {

/// `mutex` guards `polls`; the caller does not hold it.
inline void give_way(queue::IdlePolls& polls, base::ShortLock& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock || !polls.is_turn(base::MonotonicClock::now)) return;
  const auto before = base::MonotonicClock::now();
  const auto step = polls.next(before);
  lock.unlock();
  if (step == queue::WaitLadder::Step::look) return;
  // If yields are expensive, sleep: otherwise the process that we wait for gets no processor.
  if (step == queue::WaitLadder::Step::sleep) return std::this_thread::sleep_for(std::chrono::microseconds(20));
  const auto after = queue::yield(before);
  if (lock.try_lock()) polls.yielded(before, after);
}

}  // namespace fairlead::host
