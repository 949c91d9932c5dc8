#include "base/sip_hash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace fairlead::base {
namespace {

constexpr SipKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

std::vector<std::byte> counting(std::size_t length) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < length; ++i) bytes.push_back(static_cast<std::byte>(i));
  return bytes;
}

// The authors' published figures: the example of the paper (15 bytes), and the first vectors of the reference
// implementation.
TEST(SipHash, GivesThePublishedValues) {
  EXPECT_EQ(SipHash(kKey).value(), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(SipHash(kKey).add(counting(1)).value(), 0x74f839c593dc67fdU);
  EXPECT_EQ(SipHash(kKey).add(counting(8)).value(), 0x93f5f5799a932462U);
  EXPECT_EQ(SipHash(kKey).add(counting(15)).value(), 0xa129ca6149be45e5U);
}

TEST(SipHash, IsTheSameInPieces) {
  const std::vector<std::byte> bytes = counting(29);
  const std::span all(bytes);
  EXPECT_EQ(SipHash(kKey).add(all.first(8)).add(all.subspan(8, 16)).add(all.subspan(24)).value(),
            SipHash(kKey).add(all).value());
  EXPECT_EQ(SipHash(kKey).add(std::uint64_t{0x0706050403020100}).value(), SipHash(kKey).add(all.first(8)).value());
}

TEST(SipHash, FollowsKeyLengthAndEachBit) {
  const std::uint64_t before = SipHash(kKey).add(counting(16)).value();
  EXPECT_NE(SipHash({kKey.low ^ 1, kKey.high}).add(counting(16)).value(), before);
  EXPECT_NE(SipHash({kKey.low, kKey.high ^ 1}).add(counting(16)).value(), before);
  EXPECT_NE(SipHash(kKey).add(counting(17)).value(), before);
  for (std::size_t bit = 0; bit < 128; ++bit) {
    std::vector<std::byte> bytes = counting(16);
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_NE(SipHash(kKey).add(bytes).value(), before) << bit;
  }
}

}  // namespace
}  // namespace fairlead::base
