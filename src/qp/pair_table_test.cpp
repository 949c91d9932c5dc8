#include "qp/pair_table.hpp"

#include <gtest/gtest.h>

namespace fairlead::qp {
namespace {

constexpr std::uint32_t kFirst = 5 << wire::PairPort::kIndexBits;

TEST(PairTable, FindsPairsByHandleAndByNumber) {
  PairTable table(kFirst);
  EXPECT_TRUE(table.is_empty());
  QueuePair& pair = table.add({});
  EXPECT_EQ(pair.number, kFirst + PairTable::kFirstIndex);
  EXPECT_EQ(table.find({pair.index, pair.generation}), &pair);
  EXPECT_EQ(table.find({pair.index, pair.generation + 1}), nullptr);
  EXPECT_EQ(table.find({PairTable::kMost, 1}), nullptr);
  EXPECT_EQ(table.find_number(pair.number), &pair);
  EXPECT_EQ(table.find_number(kFirst - 1), nullptr);
  EXPECT_EQ(table.find_number(kFirst + PairTable::kMost), nullptr);
  pair.is_closing = true;
  EXPECT_EQ(table.find_number(pair.number), nullptr) << "peers do not reach it any more";
}

TEST(PairTable, ANumberRestsUntilAllOthersHaveBeenUsedAndItsIncarnationsGoOn) {
  PairTable table(0);
  QueuePair& first = table.add({});
  const PairHandle handle{first.index, first.generation};
  table.begin_incarnation(first);
  table.remove(first.index);
  EXPECT_EQ(table.at(handle.index), nullptr);
  for (std::uint32_t i = PairTable::kFirstIndex + 1; i < PairTable::kMost; ++i)
    EXPECT_NE(table.add({}).index, handle.index);
  QueuePair& again = table.add({});
  EXPECT_TRUE(table.is_full());
  EXPECT_EQ(again.index, handle.index);
  EXPECT_EQ(table.find(handle), nullptr);
  table.begin_incarnation(again);
  EXPECT_EQ(again.incarnation, 2u);
}

}  // namespace
}  // namespace fairlead::qp
