#include "qp/gather_list.hpp"

#include <gtest/gtest.h>

namespace fairlead::qp {
namespace {

TEST(GatherList, TakesAsManyPiecesAsARequestMayHaveAndNoMore) {
  std::byte byte{};
  GatherList list;
  EXPECT_TRUE(list.is_empty());
  for (std::uint32_t i = 0; i < kSgesMax; ++i) list.add(iovec{&byte, 1});
  EXPECT_EQ(list.pieces().size(), kSgesMax);
  EXPECT_EQ(list.regions().back(), GatherList::kNoRegion);
  EXPECT_DEATH(list.add(iovec{&byte, 1}), "more than 32 pieces");
  list.clear();
  EXPECT_TRUE(list.is_empty());
}

}  // namespace
}  // namespace fairlead::qp
