#include "wire/sequence.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace fairlead::wire {
namespace {

constexpr Sequence kLast{0xFFFF'FFFF};

TEST(Sequence, ComparesAcrossTheWrap) {
  EXPECT_EQ(kLast + 1, Sequence{0});
  EXPECT_EQ(Sequence{0} - 1, kLast);
  EXPECT_EQ(distance(kLast, Sequence{2}), 3);
  EXPECT_EQ(distance(Sequence{2}, kLast), -3);
  EXPECT_TRUE(is_before(kLast, Sequence{0}));
  EXPECT_FALSE(is_before(Sequence{0}, kLast));
  EXPECT_FALSE(is_before(kLast, kLast));
}

TEST(Sequence, AWindowHasItsBeginAndNotItsEnd) {
  const Sequence begin = kLast - 1, end = begin + 4;
  EXPECT_EQ(count_between(begin, end), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(is_between(begin, end, begin + i)) << i;
  EXPECT_FALSE(is_between(begin, end, end));
  EXPECT_FALSE(is_between(begin, end, begin - 1));
  EXPECT_FALSE(is_between(begin, begin, begin)) << "an empty one";
}

TEST(Sequence, AWindowMayBeLongerThanADistance) {
  EXPECT_TRUE(is_between(Sequence{0}, Sequence{0xF000'0000}, Sequence{0xE000'0000}));
  EXPECT_FALSE(is_between(Sequence{0}, Sequence{0xF000'0000}, Sequence{0xF000'0000}));
}

struct Other;
static_assert(!std::is_convertible_v<SerialNumber<Other>, Sequence>, "kinds are not mixed up");

}  // namespace
}  // namespace fairlead::wire
