#include "queue/yield.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <thread>

namespace {

thread_local int yields = 0;

}  // namespace

/// Counts the yields of this program's threads.
extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(::syscall(SYS_sched_yield));
}

namespace fairlead::queue {
namespace {

using namespace std::chrono_literals;

/// The time slice of the calling thread, or 0 if the kernel has none for single threads.
class Slice {
 public:
  std::uint64_t get() {
    if (::syscall(SYS_sched_getattr, 0, attributes_.data(), sizeof attributes_, 0) != 0) return 0;
    return attributes_[kRuntime];
  }
  void set(std::uint64_t ns) {
    get();
    attributes_[kRuntime] = ns;
    ::syscall(SYS_sched_setattr, 0, attributes_.data(), 0);
  }

 private:
  static constexpr std::size_t kRuntime = 3;  // sched_runtime of the kernel's sched_attr, in words
  std::array<std::uint64_t, 6> attributes_{};
};

TEST(Yield, TellsTheTimeAfterwards) {
  const auto now = base::MonotonicClock::now();
  const int before = yields;
  EXPECT_GE(yield(now - 1h), now);
  EXPECT_EQ(yields, before + 1);
}

// The times of the yields are made up.
TEST(Yield, OnceOthersHaveRunTheThreadHasShortSlices) {
  constexpr std::uint64_t kUsual = 3'000'000;
  bool has_slices = true;
  for (int i = 0; i < 2 && has_slices; ++i) {
    std::thread([&] {
      Slice slice;
      slice.set(kUsual);
      has_slices = slice.get() == kUsual;
      if (!has_slices) return;
      yield(base::MonotonicClock::now() + 1h);
      EXPECT_EQ(slice.get(), kUsual) << "nobody wanted the processor";
      yield(base::MonotonicClock::now() - 1h);
      EXPECT_LT(slice.get(), kUsual);
      slice.set(kUsual);
      yield(base::MonotonicClock::now() - 1h);
      EXPECT_EQ(slice.get(), kUsual) << "it asks once";
    }).join();
  }
  if (!has_slices) GTEST_SKIP() << "no time slices of single threads: Linux is older than 6.12, or has another policy";
}

}  // namespace
}  // namespace fairlead::queue
