#pragma once
// Whose turn it is to call back for a machine: callbacks run one at a time and in order. One thread may have the turns
// of several machines, if a callback of one delivers the events of another.

#include <atomic>
#include <thread>
#include <vector>

#include "base/short_lock.hpp"
#include "net/changes.hpp"

namespace fairlead::net {

class Machine;
struct BufferState;

/// Under the machine's lock, except where stated.
class Turn {
 public:
  /// `owner` is only compared.
  Turn(const Machine& owner, base::ShortLock& mutex, Changes& changes)
      : owner_(&owner), mutex_(mutex), changes_(changes) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool is_free() const { return thread_ == std::thread::id(); }
  bool is_mine() const { return thread_ == std::this_thread::get_id(); }
  /// Another thread has it, and goes on telling.
  bool is_telling_elsewhere() const { return !is_free() && !is_paused_ && !is_mine(); }
  void take();
  void end();

  /// Where it stands whose final event is told; of a call within a call only the inner.
  std::atomic<const BufferState*>& told() { return told_; }
  /// Whether the final event of the buffer is told at this moment. Any thread, without the lock.
  bool tells(const BufferState& buffer) const noexcept { return told_.load(std::memory_order_acquire) == &buffer; }

  /// Whether the calling thread is in a callback of some machine. Without a lock.
  static bool is_calling() noexcept { return innermost != nullptr; }

  /// While the calling thread waits in its callbacks: their machines tell nothing meanwhile, for sure.
  class Pause {
   public:
    Pause() { mark(true); }
    ~Pause() { mark(false); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    /// The machines in whose callbacks the calling thread is.
    static std::vector<const Machine*> machines();

   private:
    static void mark(bool is_paused);
  };

 private:
  static constinit thread_local Turn* innermost;  // of this thread

  const Machine* const owner_;
  base::ShortLock& mutex_;
  Changes& changes_;
  std::atomic<const BufferState*> told_{nullptr};
  std::thread::id thread_;  // nobody's by default
  Turn* outer_ = nullptr;   // of the same thread: in whose callback this one was taken
  bool is_paused_ = false;  // it waits in a callback, for what others do
};

}  // namespace fairlead::net
