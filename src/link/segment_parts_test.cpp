#include "link/segment_parts.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace fairlead::link {
namespace {

std::vector<std::byte> text(std::size_t size, unsigned key) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + key);
  return bytes;
}

/// Adds one part of `whole`, cut every `length` bytes; returns what add() returned.
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
  PartsRoom room(1 << 20);
  SegmentParts parts(room);
  const auto whole = text(3000, 1);
  EXPECT_TRUE(add(parts, 5, whole, 1144, 2).empty());
  EXPECT_TRUE(add(parts, 5, whole, 1144, 0).empty());
  EXPECT_TRUE(add(parts, 5, whole, 1144, 0).empty()) << "the same one twice";
  EXPECT_EQ(add(parts, 5, whole, 1144, 1), whole);
}

TEST(SegmentParts, OfTwoCutsAreNotMixed) {
  PartsRoom room(1 << 20);
  SegmentParts parts(room);
  const auto whole = text(1424, 2);
  EXPECT_TRUE(add(parts, 5, whole, 1344, 1).empty());
  EXPECT_TRUE(add(parts, 5, whole, 1144, 0).empty()) << "cut anew, also in two";
  EXPECT_EQ(add(parts, 5, whole, 1144, 1), whole);
}

TEST(SegmentParts, SeveralSegmentsAtATimeAndTheOldestMakesRoom) {
  PartsRoom room(1 << 20);
  SegmentParts parts(room);
  std::vector<std::vector<std::byte>> wholes;
  for (unsigned i = 0; i <= SegmentParts::kSegmentsMost; ++i) wholes.push_back(text(2000 + i, i));
  for (std::uint32_t i = 0; i < wholes.size(); ++i) EXPECT_TRUE(add(parts, i, wholes[i], 1144, 0).empty());
  for (std::uint32_t i = 1; i < wholes.size(); ++i) EXPECT_EQ(add(parts, i, wholes[i], 1144, 1), wholes[i]);
  EXPECT_TRUE(add(parts, 0, wholes[0], 1144, 1).empty()) << "its first part was forgotten";
  EXPECT_EQ(add(parts, 0, wholes[0], 1144, 0), wholes[0]);
}

TEST(SegmentParts, WhatIsHeldIsWhatCame) {
  PartsRoom room(1 << 20);
  SegmentParts parts(room);
  const auto whole = text(64'000, 3);
  EXPECT_TRUE(add(parts, 1, whole, 1008, 0).empty());
  EXPECT_LE(room.bytes_held(), 2U * 1008);
  for (int again = 0; again < 100; ++again) EXPECT_TRUE(add(parts, 1, whole, 1008, 0).empty());
  EXPECT_LE(room.bytes_held(), 2U * 1008);
  for (std::uint16_t i = 1; i < 63; ++i) EXPECT_TRUE(add(parts, 1, whole, 1008, i).empty());
  EXPECT_LE(room.bytes_held(), 2U * 63 * 1008);
  EXPECT_EQ(add(parts, 1, whole, 1008, 63), whole);
  EXPECT_EQ(room.bytes_held(), 0U);
}

TEST(SegmentParts, AllPeersTogetherAreBoundedAndWhatWasBegunFirstMakesRoom) {
  PartsRoom room(100'000);
  const auto whole = text(2000, 4);
  std::vector<std::unique_ptr<SegmentParts>> strangers;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    strangers.push_back(std::make_unique<SegmentParts>(room));
    EXPECT_TRUE(add(*strangers.back(), i, whole, 1144, 0).empty());
    EXPECT_LE(room.bytes_held(), 100'000U + 1144);
  }
  EXPECT_EQ(room.take_dropped(), 1000U - 100'000 / 1144);
  EXPECT_EQ(room.take_dropped(), 0U);
  SegmentParts honest(room);
  EXPECT_TRUE(add(honest, 5, whole, 1144, 0).empty());
  EXPECT_EQ(add(honest, 5, whole, 1144, 1), whole);
  EXPECT_TRUE(add(*strangers.front(), 0, whole, 1144, 1).empty()) << "its first part was forgotten";
  strangers.clear();
  EXPECT_EQ(room.bytes_held(), 0U);
}

}  // namespace
}  // namespace fairlead::link
