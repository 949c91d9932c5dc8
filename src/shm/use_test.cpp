#include "shm/use.hpp"

#include <gtest/gtest.h>

namespace fairlead::shm {
namespace {

std::uint64_t at(Use use, std::uint64_t turn = 1) {
  return turn << Use::kTurnShift | use.name();
}

TEST(Use, OfARegionIsOfItsQueuePairToo) {
  const std::uint64_t use = at(Use::of_region(7, 16383), 65535);
  EXPECT_TRUE(Withdrawn::region(7).is_used(use));
  EXPECT_TRUE(Withdrawn::pair(16383).is_used(use));
  EXPECT_FALSE(Withdrawn::region(6).is_used(use));
  EXPECT_FALSE(Withdrawn::pair(16382).is_used(use));
  EXPECT_FALSE(Withdrawn::exposure(use).is_used(use));
}

TEST(Use, OfTheFirstOfAllIsOne) {
  EXPECT_TRUE(Withdrawn::region(0).is_used(at(Use::of_region(0, 0))));
  EXPECT_TRUE(Withdrawn::pair(0).is_used(at(Use::of_region(0, 0))));
  EXPECT_FALSE(Withdrawn::region(0).is_used(0)) << "that is outside";
}

TEST(Use, OfAnExposureIsOfNoRegion) {
  constexpr std::uint64_t kKey = 0xABCD'EF01'2340'0000;
  const std::uint64_t use = at(Use::of_exposure(kKey));
  EXPECT_TRUE(Withdrawn::exposure(kKey).is_used(use));
  EXPECT_FALSE(Withdrawn::exposure(kKey + 1).is_used(use));
  EXPECT_FALSE(Withdrawn::region(0).is_used(use));
  EXPECT_FALSE(Withdrawn::pair(kKey >> 16 & 0x3FFF).is_used(use));
}

}  // namespace
}  // namespace fairlead::shm
