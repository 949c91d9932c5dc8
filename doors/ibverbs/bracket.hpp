#pragma once
// The section between two calls of a program: ibv_start_poll() and ibv_end_poll(), or ibv_wr_start() and
// ibv_wr_complete(). One thread at a time is inside. Unlike with a mutex, a thread that never entered may leave:
// programs do so, and it has no effect.

#include <atomic>

#include "doors/ibverbs/call.hpp"

namespace fairlead::ibverbs {

class Bracket {
 public:
  /// Waits until no thread is inside. The thread inside must not call it.
  void enter() {
    const ThreadUses* nobody = nullptr;
    while (!inside_.compare_exchange_strong(nobody, &ThreadUses::mine(), std::memory_order_acq_rel)) {
      inside_.wait(nobody, std::memory_order_relaxed);
      nobody = nullptr;
    }
  }
  void leave() {
    if (!is_mine()) return;
    inside_.store(nullptr, std::memory_order_release);
    inside_.notify_one();
  }
  bool is_mine() const { return inside_.load(std::memory_order_relaxed) == &ThreadUses::mine(); }
  bool is_entered() const { return inside_.load(std::memory_order_acquire) != nullptr; }

 private:
  std::atomic<const ThreadUses*> inside_{nullptr};
};

}  // namespace fairlead::ibverbs
