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

// The program has the message in this pass, and its answer carries the ACK.
TEST(LinkAck, TheEndOfALongMessageIsAcknowledgedByItsAnswerOrInTheNextPass) {
  World world(22);
  open_session(world);
  const LinkCounters& counters = world.ends[1].link->counters();
  std::uint64_t before = counters.acks_sent;
  const auto exchange = [&](std::size_t from) {
    const std::vector<std::uint64_t>& completed = world.ends[1 - from].completed;
    const std::size_t done = completed.size();
    world.send(from, 1 - from, 5000);
    while (completed.size() == done && world.step()) {
    }
  };
  for (int i = 0; i < 10; ++i) {
    if (i == 1) before = counters.acks_sent;  // after the first it is known that answers come
    exchange(0);
    exchange(1);
  }
  EXPECT_EQ(counters.acks_sent, before);
  world.run_until_ended();

  before = counters.acks_sent;
  const std::uint64_t cookie = world.send(0, 1, 5000);
  world.run_until_ended();
  const World::Sent& sent = world.ends[0].sent[cookie];
  EXPECT_LE(sent.ended - sent.submitted, 20us + 1us + 20us) << "it does not wait for ack_after";
  EXPECT_EQ(counters.acks_sent, before + 1);
}

// With each pass more arrives, which takes time, and the sender waits for room in its window. A short answer, such as
// that a write was executed, comes after each message of a stream, too.
TEST(LinkAck, InAStreamTheEndOfALongMessageIsAcknowledgedAtOnce) {
  World world(23);
  open_session(world);
  const auto time_of = [&](int count) {
    std::uint64_t cookie = 0;
    for (int i = 0; i < count; ++i) cookie = world.send(0, 1, 5000);
    world.run_until_ended();
    const World::Sent& sent = world.ends[0].sent[cookie];
    return sent.ended - sent.submitted;
  };
  // The answer leaves before its message is acknowledged.
  const auto answer = [&](std::size_t size) {
    const std::vector<std::uint64_t>& completed = world.ends[1].completed;
    const std::size_t done = completed.size();
    world.send(0, 1, 5000);
    while (completed.size() == done && world.step()) {
    }
    world.send(1, 0, size);
    world.run_until_ended();
  };
  EXPECT_EQ(time_of(1), 40us);
  answer(5000);
  answer(5000);
  EXPECT_EQ(time_of(1), 40us + 1ns) << "an answer may carry it";
  EXPECT_EQ(time_of(1), 40us) << "there was none";
  answer(5000);
  EXPECT_EQ(time_of(2), 40us) << "more arrived";
  for (int i = 0; i < 3; ++i) answer(8);
  EXPECT_EQ(time_of(1), 40us) << "no long answer";
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
