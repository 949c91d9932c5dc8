#include "engine/port_table.hpp"

#include <gtest/gtest.h>

#include "base/slab.hpp"
#include "engine/operation.hpp"

namespace fairlead::engine {
namespace {

TEST(PortTable, FindsWhatWasSetAndNothingElse) {
  PortTable table;
  EXPECT_EQ(table.find(0), PortTable::kNone);
  table.set(34U << 12 | 1, 7);
  table.set(PortTable::kNumberMax, 8);
  EXPECT_EQ(table.find(34U << 12 | 1), 7u);
  EXPECT_EQ(table.find(34U << 12 | 2), PortTable::kNone);
  EXPECT_EQ(table.find(PortTable::kNumberMax), 8u);
  EXPECT_EQ(table.find(~0U), PortTable::kNone) << "any number may be asked for";
  table.set(34U << 12 | 1, PortTable::kNone);
  EXPECT_EQ(table.find(34U << 12 | 1), PortTable::kNone);
}

TEST(OperationChain, KeepsOrderAndGivesUpFromTheMiddle) {
  base::Slab<Operation> operations(8);
  OperationChain chain;
  const std::uint32_t a = operations.acquire(), b = operations.acquire(), c = operations.acquire();
  for (const std::uint32_t slot : {a, b, c}) chain.append(operations, slot);
  chain.remove(operations, b);
  chain.remove(operations, b);
  EXPECT_EQ(chain.first(), a);
  EXPECT_EQ(operations[a].next, c);
  chain.remove(operations, a);
  EXPECT_EQ(chain.first(), c);
  chain.append(operations, b);
  EXPECT_EQ(operations[c].next, b);
  chain.remove(operations, c);
  chain.remove(operations, b);
  EXPECT_TRUE(chain.is_empty());
}

TEST(Names, CarrySlotAndGeneration) {
  const std::uint64_t name = pack_name(17, 4);
  EXPECT_EQ(slot_of(name), 17u);
  EXPECT_EQ(generation_of(name), 4u);
  EXPECT_NE(pack_name(0, 1), 0u);
}

}  // namespace
}  // namespace fairlead::engine
