#pragma once
// Child processes of a test. They end by exit() as programs do, so static objects are destroyed there too.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

namespace fairlead::base {

inline bool is_child_of_test = false;

/// Runs `work` in a child that exits with its result. Returns the exit code, 128 + the signal that ended the child, or
/// -1 if it hung.
inline int exit_of_child(const std::function<int()>& work) {
  constexpr auto kPatience = std::chrono::seconds(30);  // only a failing test waits so long
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    is_child_of_test = true;
    std::exit(work());
  }
  EXPECT_GT(child, 0);
  int status = 0;
  for (const auto end = std::chrono::steady_clock::now() + kPatience; ::waitpid(child, &status, WNOHANG) != child;) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Returns whether a signal that this thread blocks now, after the library's threads have started, stays pending for
/// it. A thread that does not block it would receive it, and the process would end. Only in a child.
inline bool is_signal_left_to_us() {
  sigset_t ours;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  ::kill(::getpid(), SIGTERM);
  int taken = 0;
  return ::sigwait(&ours, &taken) == 0 && taken == SIGTERM;
}

}  // namespace fairlead::base

// Called by the leak sanitizer: a child lacks the threads that held what its parent allocated.
extern "C" int __lsan_is_turned_off();                            // NOLINT(bugprone-reserved-identifier)
extern "C" [[gnu::weak, gnu::used]] int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier)
  return fairlead::base::is_child_of_test ? 1 : 0;
}
