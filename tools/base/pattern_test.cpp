#include "tools/base/pattern.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace fairlead::tools {
namespace {

constexpr PayloadName kName{
    .client = 0x1234'5678'9abc'def0, .thread = 3, .loop = 17, .direction = Direction::to_client};

std::vector<std::byte> filled(std::size_t size, const PayloadName& name = kName) {
  std::vector<std::byte> bytes(size);
  fill_pattern(bytes, name);
  return bytes;
}

TEST(Pattern, IsRightAtEverySize) {
  for (std::size_t size = 0; size < 9000; size += size < 40 ? 1 : 37) {
    EXPECT_FALSE(check_pattern(filled(size), kName)) << size;
  }
}

TEST(Pattern, EverySingleWrongByteIsFoundWhereItIs) {
  const auto right = filled(4096 + 4096 + 5);
  for (std::size_t i = 0; i < right.size(); ++i) {
    auto wrong = right;
    wrong[i] ^= std::byte{0x10};
    const auto mismatch = check_pattern(wrong, kName);
    ASSERT_TRUE(mismatch) << i;
    EXPECT_EQ(mismatch->offset, i);
    EXPECT_EQ(mismatch->expected, right[i]);
    EXPECT_EQ(mismatch->found, wrong[i]);
  }
}

TEST(Pattern, AnotherPayloadDiffersInTheFirstWords) {
  const auto bytes = filled(64);
  for (const PayloadName& other :
       {PayloadName{kName.client + 1, 3, 17, Direction::to_client},
        PayloadName{kName.client, 4, 17, Direction::to_client}, PayloadName{kName.client, 3, 18, Direction::to_client},
        PayloadName{kName.client, 3, 17, Direction::to_server}}) {
    const auto mismatch = check_pattern(bytes, other);
    ASSERT_TRUE(mismatch);
    EXPECT_LT(mismatch->offset, 2u);
  }
}

TEST(Pattern, NoTwoWordsAreEqualSoAMisplacedPieceIsFound) {
  const auto bytes = filled(1 << 20);
  std::set<std::uint64_t> words;
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    words.insert(word);
  }
  EXPECT_EQ(words.size(), bytes.size() / 8);

  auto swapped = bytes;
  std::swap_ranges(swapped.begin() + 1400, swapped.begin() + 2800, swapped.begin() + 2800);
  EXPECT_TRUE(check_pattern(swapped, kName));
}

}  // namespace
}  // namespace fairlead::tools
