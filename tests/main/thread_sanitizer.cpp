#include "tests/main/thread_sanitizer.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAIRLEAD_HAS_THREAD_SANITIZER
#endif
#endif

#ifdef FAIRLEAD_HAS_THREAD_SANITIZER
#include <sanitizer/common_interface_defs.h>

#include <thread>

// A child of fork() may make threads, also of a parent that has some: it is not watched then. A process that has
// threads at its end does not sleep for a second, in case that they race with it: tests have hundreds of processes.
extern "C" const char* __tsan_default_options();  // NOLINT(bugprone-reserved-identifier): its name
extern "C" const char* __tsan_default_options() {
  return "die_after_fork=0:atexit_sleep_ms=0";
}

// It begins with the program's first thread, and ends when the program says that it is about to lock itself in.
void fairlead::tests::stop_sanitizers_thread() {
  std::thread([] {}).join();
  __sanitizer_sandbox_arguments arguments{};
  __sanitizer_sandbox_on_notify(&arguments);
}
#else
void fairlead::tests::stop_sanitizers_thread() {}
#endif
