#include "base/address_range.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead::base {
namespace {

bool is_in(const char* range, const char* ip) {
  const auto parsed = AddressRange::parse(range);
  EXPECT_TRUE(parsed) << range;
  return parsed && parsed->contains(*SocketAddress::from_ip(ip, 20480));
}

TEST(AddressRange, HoldsTheAddressesThatBeginAsItDoes) {
  EXPECT_TRUE(is_in("10.0.0.0/8", "10.255.1.2"));
  EXPECT_FALSE(is_in("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(is_in("10.1.2.128/25", "10.1.2.200"));
  EXPECT_FALSE(is_in("10.1.2.128/25", "10.1.2.100"));
  EXPECT_TRUE(is_in("10.1.2.3", "10.1.2.3"));
  EXPECT_FALSE(is_in("10.1.2.3", "10.1.2.4"));
  EXPECT_TRUE(is_in("fd00::/8", "fd12::7"));
  EXPECT_FALSE(is_in("fd00::/8", "fe80::7"));
  EXPECT_TRUE(is_in("::1", "::1"));
}

TEST(AddressRange, AllOfIpv4IsNotAllOfIpv6) {
  EXPECT_TRUE(is_in("0.0.0.0/0", "192.168.1.1"));
  EXPECT_FALSE(is_in("0.0.0.0/0", "fd00::1"));
  EXPECT_TRUE(is_in("::/0", "192.168.1.1"));
  EXPECT_TRUE(is_in("::/0", "fd00::1"));
}

TEST(AddressRange, WhatIsNoneIsRefusedWithTheReason) {
  EXPECT_THAT(AddressRange::parse("10.0.0.1/8").error().message, ::testing::HasSubstr("bits behind the length"));
  EXPECT_THAT(AddressRange::parse("10.0.0.0/33").error().message, ::testing::HasSubstr("from 0 to 32"));
  EXPECT_THAT(AddressRange::parse("fd00::/").error().message, ::testing::HasSubstr("from 0 to 128"));
  EXPECT_THAT(AddressRange::parse("host/8").error().message, ::testing::HasSubstr("cannot be read"));
  EXPECT_FALSE(AddressRange::parse(""));
  EXPECT_FALSE(parse_ranges("10.0.0.0/8,"));
}

TEST(AddressRange, SeveralAreSeparatedByCommas) {
  const auto ranges = parse_ranges("10.0.0.0/8,fd00::/8,192.168.1.1");
  ASSERT_TRUE(ranges);
  EXPECT_EQ(ranges->size(), 3U);
  EXPECT_TRUE(contains(*ranges, *SocketAddress::from_ip("192.168.1.1", 1)));
  EXPECT_FALSE(contains(*ranges, *SocketAddress::from_ip("192.168.1.2", 1)));
}

}  // namespace
}  // namespace fairlead::base
