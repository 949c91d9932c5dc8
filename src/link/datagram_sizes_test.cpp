// Paths whose MTU is smaller than it seemed: probes find out, and segments already cut are resent in parts.

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

constexpr std::uint32_t kJumbo = 8972;

/// From now on the path silently drops longer datagrams.
void swallow_above(World& world, std::size_t bytes_max) {
  world.weather.drops = [bytes_max](std::size_t, std::span<const std::byte> bytes) { return bytes.size() > bytes_max; };
}

std::uint32_t size_used(World& world) {
  return world.ends[0].link->facts(world.peer(0, 1)).datagram_size;
}

TEST(LinkMtu, FirstContactProvesTheSizeWithAShortAndALongProbe) {
  World world(1);
  world.path_datagram = kJumbo;
  world.send(0, 1, 8);
  world.run_for(100ms);
  EXPECT_EQ(size_used(world), kJumbo);
  for (const World::End& end : world.ends) {
    EXPECT_EQ(end.link->counters().probes_sent, 2U);
    EXPECT_EQ(end.link->counters().probe_answers_received, 2U);
  }
  world.expect_all_delivered();
}

TEST(LinkMtu, ABlackHoleAtFirstContactIsFoundAndNothingIsLost) {
  World world(2);
  world.path_datagram = kJumbo;
  swallow_above(world, 1472);
  for (const std::uint32_t size : {8U, 5000U, 700U, 100'000U, 8900U, 1U << 20}) world.send(0, 1, size, 3);
  world.run_until_ended(1s);
  world.expect_all_delivered();
  world.run_for(200ms);
  EXPECT_EQ(size_used(world), 1472U);
  EXPECT_EQ(world.ends[0].notices.size(), 1U) << "connected, and never lost";
}

TEST(LinkMtu, ABlackHoleInTheMiddleOfTrafficIsFoundAndSegmentsAreCutAgain) {
  World world(3);
  world.path_datagram = kJumbo;
  world.send(0, 1, 8);
  world.run_for(100ms);
  for (int i = 0; i < 40; ++i) world.send(0, 1, 30'000, 70);
  world.run_for(30us);
  swallow_above(world, 1452);
  for (int i = 0; i < 40; ++i) world.send(0, 1, 1000 + i * 400);
  const Instant begun = world.now;
  world.run_until_ended(2s);
  world.expect_all_delivered();
  EXPECT_LT(world.now - begun, 200ms);
  world.run_for(200ms);
  EXPECT_EQ(size_used(world), 1452U);
  EXPECT_GT(world.ends[0].link->counters().resends_recut, 0U);
  EXPECT_GT(world.ends[1].link->counters().parts_received, 0U);
}

TEST(LinkMtu, APathThatNarrowsWhileShortAndLongMessagesWaitKeepsItsTurnOnce) {
  World world(4);
  world.path_datagram = kJumbo;
  world.send(0, 1, 8);
  world.run_for(100ms);
  for (int i = 0; i < 60; ++i) world.send(0, 1, 64);  // in blocks longer than the path's MTU will be
  world.send(0, 1, 100'000);
  world.ends[0].link->set_datagram_size_max(world.peer(0, 1), 1300, world.now);
  world.run_until_ended(1s);
  world.expect_all_delivered();
  EXPECT_EQ(size_used(world), 1300U);
}

TEST(LinkMtu, WhatTheKernelSaysIsFollowedAtOnce) {
  World world(4);
  world.path_datagram = kJumbo;
  for (int i = 0; i < 40; ++i) world.send(0, 1, i % 2 == 0 ? 30'000 : 700);
  world.run_for(50us);
  swallow_above(world, 1300);  // less than the waiting blocks of short messages
  world.ends[0].link->set_datagram_size_max(world.peer(0, 1), 1300, world.now);
  const Instant begun = world.now;
  world.run_until_ended(2s);
  world.expect_all_delivered();
  EXPECT_LT(world.now - begun, 20ms);
  EXPECT_EQ(size_used(world), 1300U);
}

// Like ICMP messages, which anybody may have sent.
TEST(LinkMtu, WhatSomebodySaysIsNotFollowedButTried) {
  World world(4);
  world.path_datagram = kJumbo;
  world.send(0, 1, 8);
  world.run_for(100ms);
  const auto say = [&](std::uint32_t size) {
    world.ends[0].link->hint_datagram_size(world.peer(0, 1), size, world.now);
    world.send(0, 1, 100'000);
    world.run_until_ended(2s);
    world.run_for(2s);
  };
  for (int i = 0; i < 10; ++i) say(524);
  EXPECT_EQ(size_used(world), kJumbo);
  EXPECT_EQ(world.ends[0].link->counters().sizes_lowered, 0U);
  EXPECT_EQ(world.ends[0].link->counters().size_hints, 10U);

  swallow_above(world, 1352);
  say(1352);
  EXPECT_EQ(size_used(world), 1352U);
  world.expect_all_delivered();
}

TEST(LinkMtu, PartsAreLostRepeatedReorderedAndRefusedByThePath) {
  for (std::uint64_t seed = 10; seed < 20; ++seed) {
    World world(seed);
    world.path_datagram = 65'000;
    world.send(0, 1, 8);
    world.run_for(100ms);
    world.weather.loss = world.weather.repeat = world.weather.damage = 0.05;
    world.weather.jitter = 50us;
    swallow_above(world, 1400);
    world.weather.refuses = [&](std::size_t, const Train&) { return world.random() % 3 == 0; };
    for (int i = 0; i < 12; ++i) world.send(0, 1, 60'000, 5);
    world.run_until_ended(20s);
    world.expect_all_delivered();
    EXPECT_LE(size_used(world), 1400U);
  }
}

TEST(LinkMtu, APartitionIsNoBlackHole) {
  World world(5);
  world.path_datagram = kJumbo;
  world.send(0, 1, 100'000);
  world.run_until_ended();
  world.weather.loss = 1;
  world.send(0, 1, 100'000);
  world.run_for(2s);
  world.weather.loss = 0;
  world.run_until_ended();
  world.expect_all_delivered();
  world.run_for(100ms);
  EXPECT_EQ(size_used(world), kJumbo);
  EXPECT_EQ(world.ends[0].link->counters().sizes_lowered, 0U);
}

TEST(LinkMtu, HeavyLossIsNoBlackHole) {
  World world(6);
  world.path_datagram = kJumbo;
  world.weather.loss = 0.1;
  for (int i = 0; i < 60; ++i) {
    world.send(0, 1, 100'000);
    world.run_for(1ms);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(size_used(world), kJumbo);
}

Diagnosis loss_of(const World& world, std::size_t end) {
  for (const Notice& notice : world.ends[end].notices) {
    if (notice.kind == Notice::Kind::lost) return notice.diagnosis;
  }
  return Diagnosis::none;
}

TEST(LinkDiagnosis, NothingIsHeard) {
  World world(7);
  world.weather.loss = 1;
  world.send(0, 1, 8);
  world.run_until_ended();
  EXPECT_EQ(loss_of(world, 0), Diagnosis::nothing_heard);
}

TEST(LinkDiagnosis, ShortOnesArriveLongOnesDoNot) {
  World world(8);
  swallow_above(world, 700);
  world.send(0, 1, 5000);
  world.run_until_ended();
  EXPECT_EQ(loss_of(world, 0), Diagnosis::too_long);
}

TEST(LinkDiagnosis, OneDirectionOnlyAtFirstContact) {
  World world(9);
  world.weather.drops = [](std::size_t from, auto) { return from == 0; };
  world.send(0, 1, 8);
  world.run_for(1s);
  world.send(1, 0, 8);  // 0 receives its greetings
  world.run_until_ended();
  EXPECT_EQ(loss_of(world, 0), Diagnosis::one_direction);
  EXPECT_EQ(loss_of(world, 1), Diagnosis::nothing_heard);
}

TEST(LinkDiagnosis, OneDirectionOnlyInASession) {
  World world(10);
  world.send(0, 1, 8);
  world.run_until_ended();
  world.weather.drops = [](std::size_t from, auto) { return from == 0; };
  world.send(0, 1, 8);
  for (int i = 0; i < 100 && loss_of(world, 0) == Diagnosis::none; ++i) {
    world.run_for(100ms);
    if (i % 10 == 0 && !world.ends[1].sent.empty()) continue;
    if (i % 10 == 0) world.send(1, 0, 8);
  }
  EXPECT_EQ(loss_of(world, 0), Diagnosis::one_direction);
}

}  // namespace
}  // namespace fairlead::link::testing
