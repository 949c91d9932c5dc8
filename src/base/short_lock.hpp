#pragma once
// A lock that is held for tens or hundreds of nanoseconds and is rarely contended. Unlocking is a plain store, which a
// mutex cannot do since it has to check for sleepers; both operations are inline. A thread that finds it taken polls,
// then yields, then sleeps a little: the holder may have lost its processor, or be in a long copy.

#include <atomic>
#include <chrono>
#include <thread>

#include "base/processor.hpp"

namespace fairlead::base {

class ShortLock {
 public:
  void lock() noexcept {
    if (is_taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  bool try_lock() noexcept {
    return !is_taken_.load(std::memory_order_relaxed) && !is_taken_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { is_taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kLooks = 100, kYields = 200;
  static constexpr auto kRest = std::chrono::microseconds(50);

  [[gnu::noinline]] void wait() noexcept {
    for (int i = 0;; ++i) {
      if (try_lock()) return;
      if (i < kLooks) {
        relax();
      } else if (i < kYields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kRest);
      }
    }
  }

  std::atomic<bool> is_taken_{false};
};

}  // namespace fairlead::base
