#include "base/slab.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fairlead::base {
namespace {

TEST(Slab, GivesDistinctSlotsUpToItsBoundAndThenNone) {
  Slab<int> slab(1000);
  std::set<std::uint32_t> slots;
  for (int i = 0; i < 1000; ++i) slots.insert(slab.acquire());
  EXPECT_EQ(slots.size(), 1000u);
  EXPECT_FALSE(slots.contains(Slab<int>::kNone));
  EXPECT_EQ(slab.acquire(), Slab<int>::kNone);
  EXPECT_EQ(slab.used(), 1000u);
}

TEST(Slab, AStaleNameFindsNothingAfterItsSlotIsReused) {
  Slab<int> slab(10);
  const std::uint32_t first = slab.acquire();
  const std::uint32_t generation = slab.generation(first);
  slab[first] = 7;
  ASSERT_NE(slab.find(first, generation), nullptr);
  slab.release(first);
  EXPECT_EQ(slab.find(first, generation), nullptr);
  const std::uint32_t second = slab.acquire();
  EXPECT_EQ(second, first) << "last in, first out";
  EXPECT_EQ(slab.find(second, generation), nullptr);
  ASSERT_NE(slab.find(second, slab.generation(second)), nullptr);
  EXPECT_EQ(slab[second], 0) << "an acquired object is fresh";
}

TEST(Slab, AnyNumbersMayBeAskedFor) {
  Slab<int> slab(10);
  EXPECT_EQ(slab.find(0, 0), nullptr);
  EXPECT_EQ(slab.find(5, 1), nullptr);
  EXPECT_EQ(slab.find(~0U, ~0U), nullptr);
  slab.acquire();
  EXPECT_EQ(slab.find(0, 0), nullptr) << "generation 0 names nothing";
  EXPECT_EQ(slab.find(11, 1), nullptr);
}

TEST(Slab, OfTheSameNamesFindsAndGivesWhatTheFirstWould) {
  Slab<int> slab(600);
  for (int i = 0; i < 300; ++i) slab.acquire();
  for (const std::uint32_t slot : {7U, 0U, 299U}) slab.release(slot);
  slab.release(slab.acquire());
  Slab<int> same(600);
  ASSERT_TRUE(same.restore(slab.names()));
  EXPECT_EQ(same.used(), slab.used());
  EXPECT_EQ(same.names(), slab.names());
  std::set<std::uint32_t> given;
  for (std::uint32_t slot = same.acquire(); slot != Slab<int>::kNone; slot = same.acquire()) {
    EXPECT_NE(same.find(slot, same.generation(slot)), nullptr);
    given.insert(slot);
  }
  EXPECT_EQ(given.size(), 600 - slab.used());
  EXPECT_TRUE(given.contains(7) && given.contains(0) && given.contains(299) && !given.contains(8));
}

TEST(Slab, TakesNoNamesThatNoneCanHave) {
  const std::vector<std::uint64_t> used(256, Slab<int>::kUsed | 1), zero(256, Slab<int>::kUsed), odd(256, 1ULL << 33);
  EXPECT_TRUE(Slab<int>(256).restore(used));
  EXPECT_FALSE(Slab<int>(255).restore(used)) << "more than it may have";
  EXPECT_FALSE(Slab<int>(256).restore(zero)) << "generation 0 names nothing";
  EXPECT_FALSE(Slab<int>(256).restore(odd));
}

TEST(Slab, VisitsJustTheObjectsInUse) {
  Slab<int> slab(100);
  const std::uint32_t kept = slab.acquire();
  const std::uint32_t given_back = slab.acquire();
  slab.release(given_back);
  std::set<std::uint32_t> visited;
  slab.for_each([&](std::uint32_t slot, int&) { visited.insert(slot); });
  EXPECT_EQ(visited, std::set<std::uint32_t>{kept});
}

}  // namespace
}  // namespace fairlead::base
