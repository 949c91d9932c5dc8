#pragma once
// Children of a test, which end by exit() as programs do: static objects are destroyed there, too.

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

/// Runs `work` in a child that exits with what it returns: its exit code, 128 and the signal that ended it, or -1 if it
/// hung.
inline int exit_of_child(const std::function<int()>& work) {
  constexpr auto kPatience = std::chrono::seconds(30);  // ends a failing test only
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

/// Whether a signal that this thread blocks now, after the library's threads have begun, waits for it as it should: a
/// thread that does not block it would be given it, and end the process. In a child only.
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

// Asked by the leak sanitizer: in a child the threads are missing that held what its parent had made.
extern "C" int __lsan_is_turned_off();                            // NOLINT(bugprone-reserved-identifier)
extern "C" [[gnu::weak, gnu::used]] int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier)
  return fairlead::base::is_child_of_test ? 1 : 0;
}
