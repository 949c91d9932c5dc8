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
  EXPECT_EQ(parse_quantity("64KiB", "bytes"), 65536U);
  EXPECT_EQ(parse_quantity("1.5GiB", "bytes"), 3ULL << 29);
  EXPECT_EQ(parse_quantity("10Gb/s", "bytes/s"), 1'250'000'000U);
  EXPECT_EQ(parse_quantity("2.5MB/s", "bytes/s"), 2'500'000U);
}

TEST(Quantity, IsTurnedIntoTheUnitOfTimeAskedFor) {
  EXPECT_EQ(parse_quantity("5s", "ms"), 5000U);
  EXPECT_EQ(parse_quantity("2min", "s"), 120U);
  EXPECT_EQ(parse_quantity("24h", "s"), 86400U);
  EXPECT_EQ(parse_quantity("3000us", "ms"), 3U);
  EXPECT_EQ(parse_quantity("25us", "us"), 25U);
}

TEST(Quantity, MayHaveDecimals) {
  EXPECT_EQ(parse_quantity("1.5M", "bytes"), 3U << 19);
  EXPECT_EQ(parse_quantity("2.50s", "ms"), 2500U);
  EXPECT_EQ(parse_quantity("0.5min", "s"), 30U);
  EXPECT_EQ(parse_quantity("1.0", "peers"), 1U);
  EXPECT_EQ(parse_quantity("0.0001%", "ppm"), 1U);
  EXPECT_EQ(parse_quantity("100%", "ppm"), 1'000'000U);
  EXPECT_EQ(parse_quantity("18446744073709551.615us", "ns"), ~std::uint64_t{0});
}

TEST(Quantity, IsRefusedIfItIsNotWholeInItsUnit) {
  EXPECT_EQ(parse_quantity("0.3K", "bytes"), std::nullopt);
  EXPECT_EQ(parse_quantity("0.0005s", "ms"), std::nullopt);
  EXPECT_EQ(parse_quantity("0.00001%", "ppm"), std::nullopt);
  EXPECT_EQ(parse_quantity("0.0000000000000000000000000001s", "ns"), std::nullopt);
  EXPECT_EQ(parse_quantity("500us", "ms"), std::nullopt);
  EXPECT_EQ(parse_quantity("1", ""), 1U);
}

TEST(Quantity, IsRefusedIfItIsNone) {
  for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1.5s", "1.5", "1.K", ".5K", "1.2.3", "1.-5K", "1%", "0x10",
                           "5 s", "4KB", "99999999999999999999", "1KK"})
    EXPECT_EQ(parse_quantity(text, "bytes"), std::nullopt) << text;
  EXPECT_EQ(parse_quantity("5s", "bytes"), std::nullopt);
  EXPECT_EQ(parse_quantity("5MB/s", "bytes"), std::nullopt);
  EXPECT_EQ(parse_quantity("4K", "ms"), std::nullopt);
  EXPECT_EQ(parse_quantity("4K", "peers"), std::nullopt);
  EXPECT_EQ(parse_quantity("18446744073709551615K", "bytes"), std::nullopt);
  EXPECT_EQ(parse_quantity("18446744073709551.616us", "ns"), std::nullopt);
  EXPECT_EQ(parse_quantity("1.9999999999999min", "ns"), std::nullopt) << "beyond what the arithmetic holds";
  EXPECT_EQ(parse_quantity("18446744073709551615s", "s"), std::nullopt) << "beyond what the arithmetic holds";
}

}  // namespace
}  // namespace fairlead::base
