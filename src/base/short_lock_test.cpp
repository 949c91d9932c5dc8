#include "base/short_lock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <vector>

namespace fairlead::base {
namespace {

TEST(ShortLock, IsHeldByOneAtATime) {
  constexpr int kThreads = 4, kRounds = 20'000;
  ShortLock lock;
  std::array<int, 8> counts{};  // all equal while the lock is free
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const std::scoped_lock held(lock);
        for (int& count : counts) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : counts) EXPECT_EQ(count, kThreads * kRounds);
}

TEST(ShortLock, CanBeTried) {
  ShortLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
}

}  // namespace
}  // namespace fairlead::base
