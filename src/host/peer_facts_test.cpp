#include "host/peer_facts.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "host/host_core.hpp"
#include "host/host_for_tests.hpp"

namespace fairlead::host {
namespace {

TEST(PeerFacts, ComeThroughAnAnswer) {
  const transport::PeerFacts facts = facts_from(answer_facts({.problem = transport::PeerProblem::nobody_listens,
                                                              .is_met = true,
                                                              .is_translated = true,
                                                              .release = 0x000200,
                                                              .datagram_size = 8972,
                                                              .longest_probe = 1472}));
  EXPECT_EQ(facts.problem, transport::PeerProblem::nobody_listens);
  EXPECT_TRUE(facts.is_met);
  EXPECT_TRUE(facts.is_translated);
  EXPECT_EQ(facts.release, 0x000200U);
  EXPECT_EQ(facts.datagram_size, 8972U);
  EXPECT_EQ(facts.longest_probe, 1472U);
  EXPECT_FALSE(facts_from(answer_facts({.is_translated = true})).is_met);
  EXPECT_FALSE(facts_from(answer_facts({.is_met = true})).is_translated);
}

TEST(PeerFacts, AnyAnswerIsSafe) {
  Answer answer;
  std::memset(static_cast<void*>(&answer), 0xFF, sizeof answer);
  EXPECT_EQ(facts_from(answer).problem, transport::PeerProblem::other);
}

}  // namespace
}  // namespace fairlead::host
