#pragma once
// What lies between two calls of a program: from ibv_start_poll() to ibv_end_poll(), from ibv_wr_start() to
// ibv_wr_complete(). One thread at a time is inside. Unlike a mutex it may be left by whoever never entered: programs
// do, and then nothing happens.

#include <atomic>

#include "doors/ibverbs/call.hpp"

namespace fairlead::ibverbs {

class Bracket {
 public:
  /// Waits until nobody is inside. Not for who is.
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
