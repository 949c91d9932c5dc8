#pragma once
// The turn is the right to call back for a machine: callbacks run one at a time and in order. One thread can hold the
// turns of several machines, if a callback of one delivers the events of another.

#include <atomic>
#include <thread>
#include <vector>

#include "base/short_lock.hpp"
#include "net/changes.hpp"

namespace fairlead::net {

class Machine;
struct BufferState;

/// The caller holds the machine's lock, except where stated.
class Turn {
 public:
  /// `owner` is only compared.
  Turn(const Machine& owner, base::ShortLock& mutex, Changes& changes)
      : owner_(&owner), mutex_(mutex), changes_(changes) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool is_free() const { return thread_ == std::thread::id(); }
  bool is_mine() const { return thread_ == std::this_thread::get_id(); }
  /// Returns whether another thread holds the turn and is delivering events.
  bool is_telling_elsewhere() const { return !is_free() && !is_paused_ && !is_mine(); }
  void take();
  void end();

  /// Where the machine publishes the buffer whose final event it delivers; for nested calls, only the innermost.
  std::atomic<const BufferState*>& told() { return told_; }
  /// Returns whether this machine is delivering the buffer's final event. Any thread may call it without the lock.
  bool tells(const BufferState& buffer) const noexcept { return told_.load(std::memory_order_acquire) == &buffer; }

  /// Returns whether the calling thread is in a callback of any machine. Needs no lock.
  static bool is_calling() noexcept { return innermost != nullptr; }

  /// Marks that the calling thread waits inside its callbacks: during that time their machines deliver nothing.
  class Pause {
   public:
    Pause() { mark(true); }
    ~Pause() { mark(false); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    /// Returns the machines in whose callbacks the calling thread is.
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
  std::thread::id thread_;  // default value: no thread
  Turn* outer_ = nullptr;   // the turn that encloses this one on the same thread
  bool is_paused_ = false;  // the owner waits in a callback for other threads
};

}  // namespace fairlead::net
