#pragma once
// A thread of the library. It takes none of the program's signals: whoever blocks one after our thread has begun (for
// sigwait, or a signalfd) still gets it, and no handler runs in the middle of our work. Faults (SIGSEGV and the like)
// stay unblocked: a program may have a handler that reports them. A thread that is confined to some processors does not
// confine those that it starts.

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
  /// Not while it is joinable, but in the child of a fork, where no such thread is.
  ~Thread();

  /// system: the limit of threads. What leaves `work` by an exception ends the process.
  static Result<Thread> start(std::function<void()> work);

  bool is_joinable() const noexcept { return is_joinable_ && !mark_.is_inherited(); }
  bool is_this() const noexcept { return is_joinable() && ::pthread_equal(id_, ::pthread_self()) != 0; }
  /// Nothing if it is not joinable.
  void join();
  void detach();

 private:
  pthread_t id_{};
  bool is_joinable_ = false;
  ProcessMark mark_;
};

}  // namespace fairlead::base
