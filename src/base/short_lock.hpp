#pragma once
// A lock that is held for some ten or hundred nanoseconds at a time and is seldom wanted by two. To leave it is a plain
// store, which a mutex, that has to look for sleepers, cannot do; both are done in the caller's code. Who finds it
// taken looks again, then lets others run, then sleeps a little: its holder may have lost the processor, or be at a
// long copy.

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
