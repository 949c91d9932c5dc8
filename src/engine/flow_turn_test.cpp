#include "engine/flow_turn.hpp"

#include <gtest/gtest.h>

namespace fairlead::engine {
namespace {

constexpr std::uint32_t kFirst = 0xFFFF'FFF0;

TEST(FlowTurn, KnowsWhatWasThereAndWhatMayCome) {
  FlowTurn turn;
  turn.begin(kFirst);
  EXPECT_TRUE(turn.is_possible(kFirst));
  EXPECT_FALSE(turn.is_possible(kFirst - 1)) << "nothing is over yet";
  for (int i = 0; i < 100; ++i) turn.pass();
  EXPECT_EQ(turn.next(), kFirst + 100);
  EXPECT_TRUE(turn.is_possible(kFirst));
  EXPECT_FALSE(turn.is_possible(kFirst - 1));
  EXPECT_EQ(turn.distance(kFirst), -100);
  EXPECT_TRUE(turn.is_possible(turn.next() + FlowTurn::kDistanceMost - 1));
  EXPECT_FALSE(turn.is_possible(turn.next() + FlowTurn::kDistanceMost));
  turn.pass_to(kFirst + 2 * FlowTurn::kDistanceMost);
  EXPECT_FALSE(turn.is_possible(kFirst)) << "too long ago";
  EXPECT_TRUE(turn.is_possible(turn.next() - FlowTurn::kDistanceMost + 1));
  turn.begin(kFirst);
  EXPECT_FALSE(turn.is_possible(kFirst - 1)) << "another life";
}

// Whoever counts in 32 bits has executed none after 2^32.
TEST(FlowTurn, StillKnowsAfterTheSequencesHaveGoneRound) {
  FlowTurn turn;
  turn.begin(kFirst);
  for (const std::uint32_t more : {1U << 31, 1U << 31}) turn.pass_to(turn.next() + more);
  EXPECT_EQ(turn.next(), kFirst);
  for (const std::uint32_t back : {1U, 2U, 1000U}) EXPECT_TRUE(turn.is_possible(kFirst - back)) << back;
  turn.pass();
  EXPECT_TRUE(turn.is_possible(kFirst - 1));
}

}  // namespace
}  // namespace fairlead::engine
