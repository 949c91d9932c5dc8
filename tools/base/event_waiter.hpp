#pragma once
// Waits for what callbacks of a transfer machine report, whether this thread delivers the events (synchronous) or the
// machine's own.

#include <fairlead/net/transfer_machine.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace fairlead::tools {

class EventWaiter {
 public:
  EventWaiter(net::TransferMachine& machine, bool is_synchronous)
      : machine_(machine), is_synchronous_(is_synchronous) {}

  /// Callbacks call it to change the state that a wait checks.
  template <typename Change>
  void update(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  /// Reads state that callbacks change, without a race.
  template <typename Look>
  auto look(Look look) {
    const std::lock_guard lock(mutex_);
    return look();
  }

  /// Waits until `is_done`, `deadline`, or `is_stopped`, which is polled every 100 ms. `is_done` checks state that
  /// update() changes. Returns whether it is done.
  template <typename Predicate, typename Stop>
  bool wait(Predicate is_done, Instant deadline, Stop is_stopped) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (is_done()) return true;
      const Instant now = Instant::clock::now();
      if (now >= deadline || is_stopped()) return false;
      const Instant until = std::min(deadline, now + kPatience);
      if (is_synchronous_) {
        lock.unlock();
        const auto delivered = machine_.deliver_all();
        if (!delivered || *delivered == 0) (void)machine_.wait(until);
        lock.lock();
      } else {
        changed_.wait_until(lock, until);
      }
    }
  }

 private:
  static constexpr Duration kPatience = std::chrono::milliseconds{100};

  net::TransferMachine& machine_;
  const bool is_synchronous_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace fairlead::tools
