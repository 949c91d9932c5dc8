#include "wire/part.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fairlead::wire {
namespace {

bool is_part(std::uint16_t index, std::uint16_t count, std::uint32_t whole, std::size_t length) {
  std::vector<std::byte> payload(kPartBytes + length);
  encode_part(index, count, whole, payload.data());
  const Part part = read_part(payload);
  EXPECT_EQ(part.bytes.size(), length);
  return is_possible(part);
}

TEST(Part, CoversTheWholeWithoutGapOrOverlap) {
  for (const std::uint32_t whole : {1145U, 1424U, 2288U, 2289U, 8924U, 64'952U}) {
    const auto count = static_cast<std::uint16_t>((whole + 1143) / 1144);
    std::uint32_t end = 0;
    for (std::uint16_t index = 0; index < count; ++index) {
      const std::uint32_t length = index + 1 < count ? 1144 : whole - 1144 * (count - 1U);
      std::vector<std::byte> payload(kPartBytes + length);
      encode_part(index, count, whole, payload.data());
      const Part part = read_part(payload);
      EXPECT_TRUE(is_possible(part)) << whole << " " << index;
      EXPECT_EQ(part.offset(), end);
      end += length;
    }
    EXPECT_EQ(end, whole);
  }
}

TEST(Part, ImpossibleOnesAreRefused) {
  EXPECT_TRUE(is_part(0, 2, 2000, 1000));
  EXPECT_TRUE(is_part(1, 2, 2000, 1000));
  EXPECT_TRUE(is_part(1, 2, 2000, 1));
  EXPECT_FALSE(is_part(0, 1, 2000, 2000)) << "a whole is no part";
  EXPECT_FALSE(is_part(2, 2, 2000, 1000)) << "beyond the last";
  EXPECT_FALSE(is_part(0, 65, 64'952, 1000)) << "too many";
  EXPECT_FALSE(is_part(0, 2, 70'000, 40'000)) << "too long a segment";
  EXPECT_FALSE(is_part(0, 2, 2000, 2000)) << "leaves nothing";
  EXPECT_FALSE(is_part(0, 2, 2000, 999)) << "leaves more than one";
  EXPECT_FALSE(is_part(0, 3, 2000, 1000)) << "leaves too little";
  EXPECT_FALSE(is_part(1, 2, 2000, 1001)) << "longer than the others";
  EXPECT_FALSE(is_part(2, 3, 2000, 1)) << "the others are not of one length";
}

}  // namespace
}  // namespace fairlead::wire
