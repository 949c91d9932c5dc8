#pragma once
// A condition variable for threads that wait under a machine's lock for a change of the machine.

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/short_lock.hpp"
#include "net/domain_state.hpp"

namespace fairlead::net {

class Changes {
 public:
  /// `domain` is null for a machine that has no domain and therefore never starts.
  explicit Changes(const DomainState* domain) : domain_(domain) {}

  /// Wakes all waiters. The caller holds the lock.
  void tell() {
    if (waiting_ > 0) changed_.notify_all();
  }
  /// Waits for a change; may return spuriously. In a simulation it passes simulated time instead.
  void wait(std::unique_lock<base::ShortLock>& lock, Duration at_most = Duration::max()) {
    if (domain_ != nullptr && domain_->simulation) {
      lock.unlock();
      domain_->simulation->pass_time();
      lock.lock();
      return;
    }
    ++waiting_;
    at_most == Duration::max() ? changed_.wait(lock) : static_cast<void>(changed_.wait_for(lock, at_most));
    --waiting_;
  }

 private:
  const DomainState* const domain_;
  std::condition_variable_any changed_;
  std::uint32_t waiting_ = 0;
};

}  // namespace fairlead::net
