#include "base/quantity.hpp"

#include <gtest/gtest.h>

namespace fairlead::base {
namespace {

TEST(Quantity, IsAPlainNumberInAnyUnit) {
  for (const char* unit : {"bytes", "ms", "peers"}) EXPECT_EQ(parse_quantity("64", unit), 64U) << unit;
  EXPECT_EQ(parse_quantity("18446744073709551615", "bytes"), ~std::uint64_t{0});
}

TEST(Quantity, MayNameASizeInPowersOf1024) {
  EXPECT_EQ(parse_quantity("4K", "bytes"), 4096U);
  EXPECT_EQ(parse_quantity("4m", "bytes"), 4U << 20);
  EXPECT_EQ(parse_quantity("16G", "bytes"), 16ULL << 30);
}

TEST(Quantity, IsTurnedIntoTheUnitOfTimeAskedFor) {
  EXPECT_EQ(parse_quantity("5s", "ms"), 5000U);
  EXPECT_EQ(parse_quantity("2min", "s"), 120U);
  EXPECT_EQ(parse_quantity("3000us", "ms"), 3U);
  EXPECT_EQ(parse_quantity("25us", "us"), 25U);
}

TEST(Quantity, IsRefusedIfItIsNotWholeInItsUnit) {
  EXPECT_EQ(parse_quantity("500us", "ms"), std::nullopt);
  EXPECT_EQ(parse_quantity("1", ""), 1U);
}

TEST(Quantity, IsRefusedIfItIsNone) {
  for (const char* text :
       {"", "K", "-1", "+1", " 1", "1 ", "1.5s", "0x10", "5 s", "4KB", "99999999999999999999", "1KK"})
    EXPECT_EQ(parse_quantity(text, "bytes"), std::nullopt) << text;
  EXPECT_EQ(parse_quantity("5s", "bytes"), std::nullopt);
  EXPECT_EQ(parse_quantity("4K", "ms"), std::nullopt);
  EXPECT_EQ(parse_quantity("4K", "peers"), std::nullopt);
  EXPECT_EQ(parse_quantity("18446744073709551615K", "bytes"), std::nullopt);
  EXPECT_EQ(parse_quantity("18446744073709551615s", "s"), std::nullopt) << "beyond what the arithmetic holds";
}

}  // namespace
}  // namespace fairlead::base
