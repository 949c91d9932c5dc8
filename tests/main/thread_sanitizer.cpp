#include "tests/main/thread_sanitizer.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAIRLEAD_HAS_THREAD_SANITIZER
#endif
#endif

#ifdef FAIRLEAD_HAS_THREAD_SANITIZER
#include <sanitizer/common_interface_defs.h>

#include <thread>

// Children of fork() may create threads even if the parent has threads; ThreadSanitizer does not check such children. A
// process with threads does not sleep for a second at its end to look for races, because the tests use hundreds of
// processes.
extern "C" const char* __tsan_default_options();  // NOLINT(bugprone-reserved-identifier): its name
extern "C" const char* __tsan_default_options() {
  return "die_after_fork=0:atexit_sleep_ms=0";
}

// The sanitizer's thread starts with the program's first thread, and ends when the program announces a sandbox.
void fairlead::tests::stop_sanitizers_thread() {
  std::thread([] {}).join();
  __sanitizer_sandbox_arguments arguments{};
  __sanitizer_sandbox_on_notify(&arguments);
}
#else
void fairlead::tests::stop_sanitizers_thread() {}
#endif
