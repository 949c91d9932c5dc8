#pragma once
// A thread of the library. It takes none of the program's signals. So a program that blocks a signal later (for
// sigwait, or a signalfd) still gets it, and no handler runs in this thread. Faults (SIGSEGV and the like) stay
// unblocked, for a program's handler that reports them. A thread confined to some processors does not confine the
// threads that it starts.

#include <pthread.h>

#include <functional>

#include <fairlead/error.hpp>

#include "base/process_mark.hpp"

namespace fairlead::base {

class Thread {
 public:
  Thread() = default;
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  /// Must not be joinable, except in the child of a fork, where the thread does not exist.
  ~Thread();

  /// Error `system`: the limit of threads. An exception that leaves `work` ends the process.
  static Result<Thread> start(std::function<void()> work);

  bool is_joinable() const noexcept { return is_joinable_ && !mark_.is_inherited(); }
  bool is_this() const noexcept { return is_joinable() && ::pthread_equal(id_, ::pthread_self()) != 0; }
  /// Does nothing if the thread is not joinable.
  void join();
  void detach();

 private:
  pthread_t id_{};
  bool is_joinable_ = false;
  ProcessMark mark_;
};

}  // namespace fairlead::base
