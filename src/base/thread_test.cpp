#include "base/thread.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <atomic>

#include "base/affinity.hpp"
#include "base/child_for_tests.hpp"

namespace fairlead::base {
namespace {

sigset_t mask_of_this_thread() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

TEST(Thread, TakesNoSignalOfTheProgramAndLeavesItsMakersAlone) {
  const sigset_t before = mask_of_this_thread();
  sigset_t inside{};
  auto thread = Thread::start([&] { inside = mask_of_this_thread(); });
  ASSERT_TRUE(thread) << thread.error().message;
  thread->join();
  const sigset_t after = mask_of_this_thread();
  for (int number = 1; number < 32; ++number) {
    const bool is_fault = number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
                          number == SIGTRAP || number == SIGSYS || number == SIGABRT;
    if (number != SIGKILL && number != SIGSTOP) {
      EXPECT_EQ(::sigismember(&inside, number), is_fault ? 0 : 1) << number;
    }
    EXPECT_EQ(::sigismember(&before, number), ::sigismember(&after, number)) << number;
  }
}

TEST(Thread, ASignalBlockedAfterItsBeginningIsTheBlockers) {
  EXPECT_EQ(exit_of_child([] {
              std::atomic<bool> is_over{false};
              auto thread = Thread::start([&] { is_over.wait(false); });
              const bool is_ours = is_signal_left_to_us();
              is_over = true;
              is_over.notify_one();
              thread->join();
              return is_ours ? 0 : 1;
            }),
            0);
}

TEST(Thread, WhereThereIsNoneLeftItSaysSo) {
  EXPECT_EQ(exit_of_child([] {
              // Root has no limit of threads, but not enough memory for such a stack.
              pthread_attr_t wishes;
              if (::pthread_attr_init(&wishes) != 0 ||
                  ::pthread_attr_setstacksize(&wishes, std::size_t{1} << 50) != 0 ||
                  ::pthread_setattr_default_np(&wishes) != 0)
                return 1;
              const sigset_t before = mask_of_this_thread();
              const auto thread = Thread::start([] {});
              const sigset_t after = mask_of_this_thread();
              if (thread) return 2;
              if (::sigismember(&before, SIGTERM) != ::sigismember(&after, SIGTERM)) return 3;
              return thread.error().message.starts_with("no thread: ") ? 0 : 4;
            }),
            0);
}

TEST(Thread, IsNotConfinedWithItsMaker) {
  cpu_set_t all, of_inner;
  CPU_ZERO(&of_inner);
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  unsigned first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  bool is_confined = false;
  int count_of_confined = 0;
  auto outer = Thread::start([&] {
    is_confined = confine_to_cpus({&first, 1});
    cpu_set_t own;
    ::sched_getaffinity(0, sizeof own, &own);
    count_of_confined = CPU_COUNT(&own);
    auto inner = Thread::start([&] { ::sched_getaffinity(0, sizeof of_inner, &of_inner); });
    if (inner) inner->join();
  });
  ASSERT_TRUE(outer);
  outer->join();
  EXPECT_TRUE(is_confined);
  EXPECT_EQ(count_of_confined, 1);
  EXPECT_TRUE(CPU_EQUAL(&of_inner, &all));
}

TEST(Thread, InAChildOfForkItIsNotThere) {
  std::atomic<bool> is_over{false};
  auto thread = Thread::start([&] { is_over.wait(false); });
  ASSERT_TRUE(thread);
  EXPECT_EQ(exit_of_child([&] {
              if (thread->is_joinable() || thread->is_this()) return 1;
              thread->join();    // would hang
              thread->detach();  // would touch freed memory
              const Thread moved = std::move(*thread);
              return 0;
            }),
            0);
  EXPECT_TRUE(thread->is_joinable());
  is_over = true;
  is_over.notify_one();
  thread->join();
}

}  // namespace
}  // namespace fairlead::base
