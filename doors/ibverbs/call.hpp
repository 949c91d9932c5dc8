#pragma once
// Hazard pointers: the objects that the calls of a thread are using. A program may destroy an object in one thread
// while another is inside a call with it. The destroying thread removes the object from its table and then waits until
// no thread uses it. Every call begins with a Call; objects that it finds stay valid until the Call ends.
//
// Calls are frequent and destruction is rare. A call therefore only stores the object's address. The destroying thread
// makes all processors' stores visible with membarrier; without that system call, each call pays for a fence.

#include <array>
#include <atomic>
#include <cstddef>

#include "doors/ibverbs/empty_polls.hpp"

namespace fairlead::ibverbs {

class ThreadUses {
 public:
  static ThreadUses& mine() {
    if (mine_ == nullptr) [[unlikely]]
      begin();
    return *mine_;
  }

  /// Publishes that the thread uses `object`. Returns false if it uses too many objects already. Whatever the caller
  /// then checks about the object stays true until forget().
  bool note(const void* object) {
    if (count_ == kMost) [[unlikely]]
      return false;
    used_[count_++].store(object, std::memory_order_relaxed);
    if (has_barrier) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    return true;
  }
  std::size_t count() const { return count_; }
  void forget(std::size_t first) {
    while (count_ > first) used_[--count_].store(nullptr, std::memory_order_release);
  }

  /// Waits until no other thread uses `object`, which must be unreachable already.
  static void wait_until_unused(const void* object);

  EmptyPolls polls;

 private:
  friend struct UsesOfAll;

  static constexpr std::size_t kMost = 40;

  static void begin();
  bool has(const void* object) const;

  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local ThreadUses* mine_ = nullptr;
  static inline bool has_barrier = false;

  std::array<std::atomic<const void*>, kMost> used_{};
  std::size_t count_ = 0;
  std::atomic<bool> is_taken_{true};  // by a living thread
  ThreadUses* next_ = nullptr;
};

class Call {
 public:
  Call() : uses_(ThreadUses::mine()), first_(uses_.count()) {}
  ~Call() { uses_.forget(first_); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  EmptyPolls& polls() const { return uses_.polls; }

 private:
  ThreadUses& uses_;
  std::size_t first_;
};

}  // namespace fairlead::ibverbs
