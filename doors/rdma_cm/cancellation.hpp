#pragma once
// Disables cancellation of the program's thread during our work. It may be cancelled only while it waits for an event,
// as in the kernel's write().

#include <pthread.h>

namespace fairlead::rdma_cm {

class NotCancelled {
 public:
  NotCancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { ::pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

  /// Restores the previous cancellation state while it lives.
  class Except {
   public:
    explicit Except(const NotCancelled& outer) { ::pthread_setcancelstate(outer.before_, nullptr); }
    ~Except() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr); }
    Except(const Except&) = delete;
    Except& operator=(const Except&) = delete;
  };

 private:
  int before_ = 0;
};

}  // namespace fairlead::rdma_cm
