// When ACKs leave, and what they measure.

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

TEST(LinkAck, AcksArePiggyBackedOnAnswers) {
  World world(19);
  open_session(world);
  const LinkCounters& counters = world.ends[1].link->counters();
  const std::uint64_t before = counters.acks_sent;
  for (int i = 0; i < 100; ++i) {
    world.send(0, 1, 8);
    world.run_for(21us);
    world.send(1, 0, 8);
    world.run_for(21us);
  }
  world.run_until_ended();
  EXPECT_LE(counters.acks_sent - before, 1U);
}

TEST(LinkAck, ALoneMessageIsAcknowledgedAfterTheDelay) {
  World world(20);
  open_session(world);
  const std::uint64_t cookie = world.send(0, 1, 8);
  world.run_until_ended();
  const World::Sent& sent = world.ends[0].sent[cookie];
  EXPECT_EQ(sent.ended - sent.submitted, 20us + 25us + 20us);
  EXPECT_EQ(world.ends[0].link->counters().resends, 0U);
}

TEST(LinkAck, TheRoundTripIsMeasuredWithoutTheAcksDelay) {
  World world(21);
  open_session(world);
  for (int i = 0; i < 50; ++i) {
    world.send(0, 1, 8);
    world.run_for(1ms);
  }
  const PeerFacts facts = world.ends[0].link->facts(world.peer(0, 1));
  EXPECT_NEAR(static_cast<double>(facts.round_trip.count()), 40'000.0, 200.0);
  EXPECT_TRUE(facts.is_connected);
  EXPECT_EQ(facts.epoch, world.ends[1].epoch);
}

}  // namespace
}  // namespace fairlead::link::testing
