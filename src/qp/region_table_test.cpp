#include "qp/region_table.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fairlead::qp {
namespace {

using verbs::Cause;

class Regions : public testing::Test {
 protected:
  std::array<std::byte, 64> memory_{};
  RegionTable table_{100};
  std::uint32_t key_ = table_.add(
      {.base = memory_.data(), .length = 32, .iova = 1000, .access = verbs::access::remote_write, .domain = 7});
};

TEST_F(Regions, PermitWhatLiesInThemWithTheRightsThatTheyHave) {
  EXPECT_EQ(table_.locate(key_ + 1, 7, 1000, 1, 0).cause(), Cause::key_unknown);
  EXPECT_EQ(table_.locate(key_, 8, 1000, 1, 0).cause(), Cause::key_unknown);
  EXPECT_EQ(table_.locate(key_, 7, 1000, 1, verbs::access::remote_read).cause(), Cause::no_right);
  for (const auto& [address, length] :
       {std::pair<std::uint64_t, std::uint64_t>{999, 1}, {1000, 33}, {1032, 1}, {1001, ~0ULL}}) {
    const Permit permit = table_.locate(key_, 7, address, length, verbs::access::remote_write);
    EXPECT_TRUE(permit.is_refused());
    EXPECT_EQ(permit.cause(), Cause::out_of_range);
  }
  const Permit permit = table_.locate(key_, 7, 1004, 28, verbs::access::remote_write);
  ASSERT_FALSE(permit.is_refused());
  EXPECT_EQ(permit.at(), memory_.data() + 4);
  EXPECT_EQ(permit.range().iov_len, 28u);
}

TEST_F(Regions, APermitIsGoodForItsRangeOnly) {
  const std::array<std::byte, 9> bytes{std::byte{1}};
  const Permit permit = table_.locate(key_, 7, 1000, 8, verbs::access::remote_write);
  permit.write(std::span(bytes).first(8));
  permit.store_last(std::byte{5});
  EXPECT_EQ(memory_[7], std::byte{5});
  EXPECT_DEATH(permit.write(bytes), "9 bytes for a permit for 8");
  EXPECT_DEATH(Permit().store_last(std::byte{5}), "1 bytes for a permit for 0");
}

}  // namespace
}  // namespace fairlead::qp
