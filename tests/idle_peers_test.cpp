// An engine's memory for a quiet peer stays within its bound. `./dev bench peers` reports more.

#include <gtest/gtest.h>

#include "bench/peers_crowd.hpp"

namespace fairlead::tests {
namespace {

TEST(IdlePeers, TakeTwoKibibytesEachAtMost) {
  // Both numbers exceed the 256 flight recorders, which cost the busiest peers 2 KiB more.
  constexpr std::uint32_t kFew = 300, kMany = 1300;
  const std::uint64_t few = bench::Crowd(kFew).measure_memory();
  if (few == 0) GTEST_SKIP() << "this allocator does not tell what is in use";
  const std::uint64_t many = bench::Crowd(kMany).measure_memory();
  EXPECT_GT(many, few);
  EXPECT_LE((many - few) / (kMany - kFew), 2048u);
}

}  // namespace
}  // namespace fairlead::tests
