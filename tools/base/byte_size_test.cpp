#include "tools/base/byte_size.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace fairlead::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kGi = 1 << 30;

TEST(ByteSize, NumbersAndSuffixes) {
  EXPECT_EQ(parse_byte_size("1", kGi), 1u);
  EXPECT_EQ(parse_byte_size("1500", kGi), 1500u);
  EXPECT_EQ(parse_byte_size("4k", kGi), 4096u);
  EXPECT_EQ(parse_byte_size("64M", kGi), 64u << 20);
  EXPECT_EQ(parse_byte_size("1G", kGi), kGi);
}

TEST(ByteSize, EverythingElseIsAnErrorThatNamesTheTextAndTheRange) {
  for (const char* text : {"", "0", "0K", "K", "-1", "+1", "1.3K", "1MB", "1 M", "M1", "0x10", "2G", "1025M",
                           "99999999999999999999", "17179869185G", "1G1"}) {
    const auto size = parse_byte_size(text, kGi);
    ASSERT_FALSE(size) << text;
    EXPECT_THAT(size.error().message, HasSubstr(fmt::format("'{}'", text)));
    EXPECT_THAT(size.error().message, HasSubstr("1 to 1G"));
  }
}

TEST(ByteSize, Lists) {
  EXPECT_THAT(*parse_byte_sizes("8,64K,1M", kGi), ElementsAre(8, 65536, 1 << 20));
  for (const char* text : {"", ",", "8,", ",8", "8,,9", "8;9"}) EXPECT_FALSE(parse_byte_sizes(text, kGi)) << text;
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_FALSE(parse_byte_sizes(many, kGi));
}

TEST(ByteSize, PrintsTheShortestExactForm) {
  EXPECT_EQ(byte_size_text(1), "1");
  EXPECT_EQ(byte_size_text(1500), "1500");
  EXPECT_EQ(byte_size_text(65536), "64K");
  EXPECT_EQ(byte_size_text(3 << 20), "3M");
  EXPECT_EQ(byte_size_text(kGi), "1G");
}

}  // namespace
}  // namespace fairlead::tools
