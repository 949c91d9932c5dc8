#include "qp/request_turn.hpp"

#include <gtest/gtest.h>

namespace fairlead::qp {
namespace {

constexpr wire::RequestSequence kFirstTurn{0xFFFF'FFF0};

TEST(RequestTurn, KnowsWhatWasThereAndWhatMayCome) {
  RequestTurn turn;
  turn.begin(kFirstTurn);
  EXPECT_TRUE(turn.is_possible(kFirstTurn));
  EXPECT_FALSE(turn.is_possible(kFirstTurn - 1)) << "nothing is over yet";
  for (int i = 0; i < 100; ++i) turn.pass();
  EXPECT_EQ(turn.next(), kFirstTurn + 100);
  EXPECT_TRUE(turn.is_possible(kFirstTurn));
  EXPECT_FALSE(turn.is_possible(kFirstTurn - 1));
  EXPECT_EQ(turn.last(), kFirstTurn + 99);
  EXPECT_EQ(turn.distance(kFirstTurn), -100);
  EXPECT_TRUE(turn.is_possible(turn.next() + RequestTurn::kDistanceMost - 1));
  EXPECT_FALSE(turn.is_possible(turn.next() + RequestTurn::kDistanceMost));
  turn.pass_to(kFirstTurn + 2 * RequestTurn::kDistanceMost);
  EXPECT_FALSE(turn.is_possible(kFirstTurn)) << "too long ago";
  EXPECT_TRUE(turn.is_possible(turn.next() - RequestTurn::kDistanceMost + 1));
  turn.begin(kFirstTurn);
  EXPECT_FALSE(turn.is_possible(kFirstTurn - 1)) << "another incarnation";
}

// A 32-bit count of finished requests would be 0 again after 2^32.
TEST(RequestTurn, StillKnowsAfterTheSequencesHaveGoneRound) {
  RequestTurn turn;
  turn.begin(kFirstTurn);
  for (const std::uint32_t more : {1U << 31, 1U << 31}) turn.pass_to(turn.next() + more);
  EXPECT_EQ(turn.next(), kFirstTurn);
  for (const std::uint32_t back : {1U, 2U, 1000U}) EXPECT_TRUE(turn.is_possible(kFirstTurn - back)) << back;
  turn.pass();
  EXPECT_TRUE(turn.is_possible(kFirstTurn - 1));
}

}  // namespace
}  // namespace fairlead::qp
