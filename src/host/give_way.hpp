#pragma once
// What a poller of an application does after many polls in vain.

#include <chrono>
#include <mutex>
#include <thread>

#include <sched.h>

#include "base/short_lock.hpp"
#include "queue/idle_polls.hpp"

namespace fairlead::host {

/// `polls` is guarded by `mutex`, which the caller does not hold.
inline void give_way(queue::IdlePolls& polls, base::ShortLock& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock || !polls.is_turn()) return;
  const auto before = base::MonotonicClock::now();
  const auto step = polls.next(before);
  lock.unlock();
  if (step == queue::WaitLadder::Step::look) return;
  // Where a yield is dear, whoever is waited for gets the processor only if we are not there for it.
  if (step == queue::WaitLadder::Step::sleep) return std::this_thread::sleep_for(std::chrono::microseconds(20));
  ::sched_yield();
  const auto after = base::MonotonicClock::now();
  if (lock.try_lock()) polls.yielded(before, after);
}

}  // namespace fairlead::host
