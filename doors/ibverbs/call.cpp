#include "doors/ibverbs/call.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/process_mark.hpp"

namespace fairlead::ibverbs {

/// The uses of all threads that ever made a call, newest first. Never destroyed; new threads reuse them.
struct UsesOfAll {
  static inline std::atomic<ThreadUses*> first = nullptr;

  static bool register_barrier() {
    return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  }

  static void prepare_process() {
    ThreadUses::has_barrier = register_barrier();
    base::at_fork({.in_child = [] { forget_other_threads(); }});
  }

  // The child of a fork has only one thread.
  static void forget_other_threads() {
    for (ThreadUses* each = first.load(std::memory_order_acquire); each != nullptr; each = each->next_) {
      if (each == ThreadUses::mine_) continue;
      each->forget(0);
      each->is_taken_.store(false, std::memory_order_release);
    }
  }

  static ThreadUses* take() {
    for (ThreadUses* each = first.load(std::memory_order_acquire); each != nullptr; each = each->next_) {
      bool is_taken = false;
      if (each->is_taken_.compare_exchange_strong(is_taken, true, std::memory_order_acq_rel)) return each;
    }
    auto* made = new ThreadUses;
    made->next_ = first.load(std::memory_order_relaxed);
    while (!first.compare_exchange_weak(made->next_, made, std::memory_order_acq_rel)) {
    }
    return made;
  }

  static void give(ThreadUses& uses) {
    uses.forget(0);
    uses.polls = {};
    ThreadUses::mine_ = nullptr;
    uses.is_taken_.store(false, std::memory_order_release);
  }
};

void ThreadUses::begin() {
  static std::once_flag once;
  std::call_once(once, UsesOfAll::prepare_process);
  mine_ = UsesOfAll::take();
  struct AtExit {
    ~AtExit() {
      if (mine_ != nullptr) UsesOfAll::give(*mine_);
    }
  };
  static thread_local AtExit at_exit;
}

bool ThreadUses::has(const void* object) const {
  return std::ranges::any_of(used_,
                             [object](const auto& used) { return used.load(std::memory_order_acquire) == object; });
}

void ThreadUses::wait_until_unused(const void* object) {
  if (has_barrier && ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    UsesOfAll::register_barrier();  // a fork may end the registration
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  constexpr int kYields = 100;
  for (ThreadUses* each = UsesOfAll::first.load(std::memory_order_acquire); each != nullptr; each = each->next_) {
    for (int i = 0; each != mine_ && each->has(object); ++i) {
      if (i < kYields) {
        ::sched_yield();
      } else {
        // The other call may wait for a peer: seconds at most.
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
  }
}

}  // namespace fairlead::ibverbs
