#include "link/segment_parts.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fairlead::link {
namespace {

std::vector<std::byte> text(std::size_t size, unsigned key) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + key);
  return bytes;
}

/// Hands over one part of `whole`, cut every `length` bytes; what came of it.
std::vector<std::byte> add(SegmentParts& parts, std::uint32_t sequence, const std::vector<std::byte>& whole,
                           std::uint32_t length, std::uint16_t index) {
  const auto count = static_cast<std::uint16_t>((whole.size() + length - 1) / length);
  const std::size_t begin = std::size_t{index} * length;
  const wire::Part part{.index = index,
                        .count = count,
                        .payload_bytes = static_cast<std::uint32_t>(whole.size()),
                        .bytes = std::span(whole).subspan(begin, std::min<std::size_t>(length, whole.size() - begin))};
  EXPECT_TRUE(wire::is_possible(part));
  const auto came = parts.add({sequence}, part);
  return {came.begin(), came.end()};
}

TEST(SegmentParts, ArePutTogetherInAnyOrder) {
  SegmentParts parts;
  const auto whole = text(3000, 1);
  EXPECT_TRUE(add(parts, 5, whole, 1144, 2).empty());
  EXPECT_TRUE(add(parts, 5, whole, 1144, 0).empty());
  EXPECT_TRUE(add(parts, 5, whole, 1144, 0).empty()) << "the same one twice";
  EXPECT_EQ(add(parts, 5, whole, 1144, 1), whole);
}

TEST(SegmentParts, OfTwoCutsAreNotMixed) {
  SegmentParts parts;
  const auto whole = text(1424, 2);
  EXPECT_TRUE(add(parts, 5, whole, 1344, 1).empty());
  EXPECT_TRUE(add(parts, 5, whole, 1144, 0).empty()) << "cut anew, also in two";
  EXPECT_EQ(add(parts, 5, whole, 1144, 1), whole);
}

TEST(SegmentParts, SeveralSegmentsAtATimeAndTheOldestMakesRoom) {
  SegmentParts parts;
  std::vector<std::vector<std::byte>> wholes;
  for (unsigned i = 0; i <= SegmentParts::kSegmentsMost; ++i) wholes.push_back(text(2000 + i, i));
  for (std::uint32_t i = 0; i < wholes.size(); ++i) EXPECT_TRUE(add(parts, i, wholes[i], 1144, 0).empty());
  for (std::uint32_t i = 1; i < wholes.size(); ++i) EXPECT_EQ(add(parts, i, wholes[i], 1144, 1), wholes[i]);
  EXPECT_TRUE(add(parts, 0, wholes[0], 1144, 1).empty()) << "its first part was forgotten";
  EXPECT_EQ(add(parts, 0, wholes[0], 1144, 0), wholes[0]);
}

}  // namespace
}  // namespace fairlead::link
