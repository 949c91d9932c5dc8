// A peer may go in any state, and everything that waited then ends. With the address sanitizer these tests also show
// that no list keeps a freed peer (a fault of usnic's engine).

#include <algorithm>

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

/// Disconnects end 0 from 1 now, then lets everything run and checks that 0 works on.
void disconnect_and_go_on(World& world) {
  Link& link = *world.ends[0].link;
  link.disconnect(world.peer(0, 1), world.now);
  world.weather = {};
  world.ends[1].is_deaf = false;
  world.run_until_ended();
  world.expect_consistent();
  EXPECT_EQ(link.counters().segments_in_flight, 0U);
  EXPECT_EQ(link.counters().messages_pending, 0U);
  const std::uint64_t next = world.send(0, 1, 3000);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[next].status, Status::ok);
}

int count_lost(const World::End& end, Diagnosis diagnosis) {
  return static_cast<int>(std::ranges::count_if(end.notices, [&](const Notice& notice) {
    return notice.kind == Notice::Kind::lost && notice.status == Status::refused && notice.diagnosis == diagnosis;
  }));
}

TEST(LinkTeardown, WithAnAckOwed) {
  World world(1);
  open_session(world);
  world.send(1, 0, 8);
  world.run_for(21us);  // it has arrived, and its ACK waits
  disconnect_and_go_on(world);
}

TEST(LinkTeardown, WithAnAckDue) {
  World world(2);
  open_session(world);
  world.send(1, 0, 8);
  world.ends[0].is_deaf = false;
  world.run_for(21us);
  world.ends[0].link->expire(world.now + 1ms);  // now on the list of ACKs to send
  disconnect_and_go_on(world);
}

TEST(LinkTeardown, WithQueuedData) {
  World world(3);
  open_session(world);
  for (int i = 0; i < 100; ++i) world.send(0, 1, i % 2 == 0 ? 8 : 5000);
  disconnect_and_go_on(world);
}

TEST(LinkTeardown, WithDataInFlight) {
  World world(4);
  open_session(world);
  for (int i = 0; i < 100; ++i) world.send(0, 1, i % 2 == 0 ? 8 : 5000);
  world.run_for(10us);
  disconnect_and_go_on(world);
}

TEST(LinkTeardown, WithAResendPending) {
  World world(5);
  open_session(world);
  world.weather.drops = [](std::size_t, auto) { return true; };
  for (int i = 0; i < 100; ++i) world.send(0, 1, 5000);
  world.run_for(10us);
  world.ends[0].link->expire(world.now + 1ms);  // a probe waits on the resend list
  disconnect_and_go_on(world);
}

TEST(LinkTeardown, WithAMessageHalfReceived) {
  World world(6);
  open_session(world);
  int count = 0;
  world.weather.drops = [&](std::size_t from, auto) { return from == 1 && ++count > 20; };
  world.send(1, 0, 100'000);
  world.send(1, 0, 100'000);
  world.run_for(50us);
  disconnect_and_go_on(world);
  int lost = 0;
  for (const Notice& notice : world.ends[0].notices) lost += notice.kind == Notice::Kind::reassembly_lost;
  EXPECT_EQ(lost, 1);
}

TEST(LinkTeardown, WhileOpening) {
  World world(7);
  world.weather.drops = [](std::size_t, auto) { return true; };
  for (int i = 0; i < 10; ++i) world.send(0, 1, 5000);
  world.run_for(10ms);
  disconnect_and_go_on(world);
}

TEST(LinkTeardown, AnEndTellsWhatWasTakenAndRefusesTheRestAtOnce) {
  World world(11);
  open_session(world);
  // What ends in 1 takes its first two messages; their ACK, the third message and one of its two closes get lost.
  int data = 0, closes = 0;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    const auto kind = static_cast<wire::Kind>(bytes[1]);
    if (from == 0) return kind == wire::Kind::data && ++data > 2;
    return kind == wire::Kind::ack || (kind == wire::Kind::close && ++closes == 1);
  };
  const std::uint64_t first = world.send(0, 1, 1000), second = world.send(0, 1, 1000);
  world.run_for(25us);
  const std::uint64_t third = world.send(0, 1, 1000);
  world.run_for(5us);
  world.ends[1].link->disconnect_all(world.now);
  world.run_until_ended(1ms);
  EXPECT_EQ(world.ends[0].sent[first].status, Status::ok);
  EXPECT_EQ(world.ends[0].sent[second].status, Status::ok);
  EXPECT_EQ(world.ends[0].sent[third].status, Status::refused);
  EXPECT_EQ(world.ends[1].link->peer_count(), 0U);
  EXPECT_EQ(world.ends[1].link->counters().closes_sent, 2U);
  world.expect_consistent();
}

TEST(LinkTeardown, HalfReceivedMessagesOfASilentPeerAreGivenBack) {
  World world(8);
  open_session(world);
  int count = 0;
  world.weather.drops = [&](std::size_t from, auto) { return from == 1 && ++count > 20; };
  world.send(1, 0, 100'000);
  world.run_for(1ms);
  world.ends[1].is_deaf = true;
  world.run_for(7s);
  int lost = 0;
  for (const Notice& notice : world.ends[0].notices) {
    lost += notice.kind == Notice::Kind::reassembly_lost && notice.status == Status::silent && notice.target != 0;
  }
  EXPECT_EQ(lost, 1);
}

// The other side ends the session, because of what this one did.
TEST(LinkTeardown, APeerThatIsPutOutHearsItAndMayComeBack) {
  World world(11);
  open_session(world);
  for (int i = 0; i < 20; ++i) {
    world.send(0, 1, i % 2 == 0 ? 8 : 30'000);
    world.send(1, 0, i % 2 == 0 ? 8 : 30'000);
  }
  world.run_for(50us);
  Link& link = *world.ends[0].link;
  link.expel(world.peer(0, 1), world.now);
  EXPECT_FALSE(link.facts(world.peer(0, 1)).is_connected);
  EXPECT_FALSE(link.next_delivery()) << "what came with its last datagram";
  world.run_until_ended();
  world.expect_consistent();
  EXPECT_EQ(link.counters().messages_pending, 0U);
  const auto is_refused = [](const Notice& notice) {
    return notice.kind == Notice::Kind::lost && notice.status == Status::refused;
  };
  for (const auto& end : world.ends) {
    EXPECT_EQ(std::ranges::count_if(end.notices, is_refused), 1);
    EXPECT_EQ(count_lost(end, Diagnosis::left), 0);
  }
  for (const std::size_t from : {1, 0}) {
    const std::uint64_t next = world.send(from, 1 - from, 3000);
    world.run_until_ended();
    EXPECT_EQ(world.ends[from].sent[next].status, Status::ok);
  }
  link.expel(world.peer(0, 1), world.now);
  link.expel(world.peer(0, 1), world.now);  // it is out already
  link.expel({12345, 1}, world.now);
}

TEST(LinkTeardown, WhoLeavesIsNotTakenForDead) {
  World world(12, {}, 3);
  open_session(world);
  world.send(2, 0, 8);
  world.run_until_ended();
  Link& leaver = *world.ends[0].link;
  EXPECT_EQ(leaver.take_leave(world.now), 2U);
  for (const std::size_t other : {1, 2}) world.send(other, 0, 100'000);
  world.run_for(1ms);
  EXPECT_TRUE(world.is_all_ended());
  for (const std::size_t other : {1, 2}) EXPECT_EQ(count_lost(world.ends[other], Diagnosis::left), 1);
  EXPECT_EQ(count_lost(world.ends[0], Diagnosis::none), 2) << "who has heard it is gone";
  EXPECT_EQ(leaver.take_leave(world.now), 0U);
  world.expect_consistent();
}

TEST(LinkTeardown, WhatIsSaidOnLeavingIsSaidUntilItIsHeard) {
  World world(13);
  open_session(world);
  // The close is lost three times, then its answer once.
  int words = 0, answers = 0;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (static_cast<wire::Kind>(bytes[1]) != wire::Kind::close) return false;
    return from == 0 ? ++words <= 3 : ++answers == 1;
  };
  for (int said = 1; said <= 4; ++said) {
    EXPECT_EQ(world.ends[0].link->take_leave(world.now), 1U);
    world.run_for(1ms);
    EXPECT_EQ(count_lost(world.ends[1], Diagnosis::left), said == 4 ? 1 : 0);
  }
  // The other end has no session any more and does not answer; the leaving end gives up after its last repeat.
  EXPECT_EQ(world.ends[0].link->take_leave(world.now), 1U);
  world.ends[0].link->disconnect_all(world.now);
  world.run_for(1ms);
  EXPECT_EQ(count_lost(world.ends[1], Diagnosis::left), 1);
  world.expect_consistent();
}

TEST(LinkTeardown, WhoLeavesOpensNoSessionAnyMore) {
  World world(14);
  open_session(world);
  world.ends[0].link->take_leave(world.now);
  world.run_for(1ms);
  const std::uint64_t own = world.send(0, 1, 3000);
  const std::uint64_t others = world.send(1, 0, 8);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[own].status, Status::refused);
  EXPECT_EQ(world.ends[1].sent[others].status, Status::unreachable);
  EXPECT_GT(world.ends[0].link->counters().refused[static_cast<std::size_t>(Refusal::leaving)], 0U);
  EXPECT_EQ(world.ends[0].link->counters().sessions_opened, 1U);
  world.expect_consistent();
}

TEST(LinkTeardown, AnEndWithoutALeaveIsOneToo) {
  World world(15);
  open_session(world);
  world.ends[1].link->disconnect_all(world.now);
  world.run_for(1ms);
  EXPECT_EQ(count_lost(world.ends[0], Diagnosis::left), 1);
}

TEST(LinkTeardown, TheLinkItselfMayGoInAnyState) {
  for (int steps = 0; steps < 60; ++steps) {
    World world(9);
    for (int i = 0; i < 20; ++i) {
      world.send(0, 1, i % 2 == 0 ? 8 : 30'000);
      world.send(1, 0, i % 2 == 0 ? 8 : 30'000);
    }
    world.weather.loss = 0.2;
    for (int i = 0; i < steps; ++i) world.step();
    world.ends[steps % 2].link.reset();
    world.ends[1 - steps % 2].link.reset();
  }
}

TEST(LinkTeardown, AnIdlePeerHasNoTimerAndGivesItsRingsBack) {
  World world(10);
  open_session(world);
  world.send(0, 1, 1 << 20);
  world.run_until_ended();
  world.run_for(3s);
  EXPECT_EQ(world.ends[0].link->next_deadline(), base::kNever);
  EXPECT_EQ(world.ends[1].link->next_deadline(), base::kNever);
  world.send(0, 1, 1 << 20);  // and they come back
  world.run_until_ended();
  world.expect_all_delivered();
}

}  // namespace
}  // namespace fairlead::link::testing
