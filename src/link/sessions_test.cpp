// How sessions open, are replaced, fail and end.

#include <algorithm>
#include <vector>

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

TEST(LinkSession, HellosThatCrossMeetInOneSession) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    World world(seed);
    world.weather.loss = seed % 2 == 0 ? 0 : 0.3;
    world.weather.jitter = 50us;
    world.send(0, 1, 100);
    world.send(1, 0, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(world.ends[0].link->counters().sessions_opened, 1U);
    EXPECT_EQ(world.ends[1].link->counters().sessions_opened, 1U);
  }
}

TEST(LinkSession, LostAndRepeatedHellosDoNoHarm) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    World world(seed);
    world.weather.loss = 0.5;
    world.weather.repeat = 0.5;
    world.weather.jitter = 100us;
    world.send(0, 1, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(world.ends[1].link->counters().sessions_opened, 1U);
  }
}

TEST(LinkSession, NobodyThereIsUnreachable) {
  World world(1);
  world.weather.drops = [](std::size_t from, auto) { return from == 1; };
  const std::uint64_t cookie = world.send(0, 1, 8);
  const std::uint64_t longer = world.send(0, 1, 100'000);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::unreachable);
  EXPECT_EQ(world.ends[0].sent[longer].status, Status::unreachable);
  ASSERT_EQ(world.ends[0].notices.size(), 1U);
  const Notice& notice = world.ends[0].notices[0];
  EXPECT_EQ(notice.kind, Notice::Kind::lost);
  EXPECT_GE(notice.silent_for, 2s);
  EXPECT_LE(notice.silent_for, 2300ms);
  EXPECT_GE(notice.resends, 5U);
  world.expect_consistent();
  // The next submit opens a new session.
  world.weather.drops = nullptr;
  world.send(0, 1, 8);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].notices.back().kind, Notice::Kind::connected);
}

TEST(LinkSession, APeerThatStopsIsSilent) {
  World world(4);
  open_session(world);
  world.ends[1].is_deaf = true;
  const base::Instant begin = world.now;
  std::vector<std::uint64_t> cookies{world.send(0, 1, 8), world.send(0, 1, 100'000), world.send(0, 1, 5 << 20)};
  world.run_until_ended();
  for (std::uint64_t cookie : cookies) EXPECT_EQ(world.ends[0].sent[cookie].status, Status::silent);
  EXPECT_GE(world.now - begin, 5s);
  EXPECT_LE(world.now - begin, 5500ms);
  const Notice& notice = world.ends[0].notices.back();
  EXPECT_EQ(notice.kind, Notice::Kind::lost);
  EXPECT_GE(notice.silent_for, 5s);
  EXPECT_GE(notice.resends, 5U);
  EXPECT_EQ(world.ends[0].link->counters().segments_in_flight, 0U);
  world.expect_consistent();
}

TEST(LinkSession, NobodyListensIsBelievedOnlyBeforeTheSession) {
  World world(5);
  world.weather.drops = [](std::size_t, auto) { return true; };
  const std::uint64_t cookie = world.send(0, 1, 8);
  world.run_for(1ms);
  world.ends[0].link->unreachable(world.ends[1].address, Obstacle::nobody_listens, world.now);
  world.run_for(1ms);
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::refused);
  world.weather.drops = nullptr;
  open_session(world);
  world.send(0, 1, 8);
  world.ends[0].link->unreachable(world.ends[1].address, Obstacle::nobody_listens, world.now);
  world.run_for(1ms);
  EXPECT_EQ(world.ends[0].sent.rbegin()->second.status, Status::ok);
}

TEST(LinkSession, WithoutAWayItIsUnreachableAtOnce) {
  for (const auto& [obstacle, diagnosis] :
       {std::pair{Obstacle::no_route, Diagnosis::no_route}, {Obstacle::prohibited, Diagnosis::prohibited}}) {
    World world(5);
    world.weather.drops = [](std::size_t, auto) { return true; };
    const std::uint64_t cookie = world.send(0, 1, 8);
    world.run_for(1ms);
    world.ends[0].link->unreachable(world.ends[1].address, obstacle, world.now);
    world.run_for(1ms);
    EXPECT_EQ(world.ends[0].sent[cookie].status, Status::unreachable);
    EXPECT_EQ(world.ends[0].notices.back().diagnosis, diagnosis);
  }
}

// A firewall rule may go away in time; if it stays, the engine reports it.
TEST(LinkSession, WhatOurOwnFirewallDropsIsTheDiagnosis) {
  World world(5);
  open_session(world);
  world.weather.drops = [](std::size_t, auto) { return true; };
  const std::uint64_t first = world.send(0, 1, 8);
  world.run_for(100ms);
  world.ends[0].link->unreachable(world.ends[1].address, Obstacle::not_let_out, world.now);
  world.weather.drops = nullptr;
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[first].status, Status::ok);
  world.weather.drops = [](std::size_t, auto) { return true; };
  const std::uint64_t second = world.send(0, 1, 8);
  world.run_for(100ms);
  world.ends[0].link->unreachable(world.ends[1].address, Obstacle::not_let_out, world.now);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[second].status, Status::silent);
  EXPECT_EQ(world.ends[0].notices.back().diagnosis, Diagnosis::not_let_out);
}

// ICMP may be forged: it ends no session, and is quoted when the link gives up.
TEST(LinkSession, AnObstacleOfAnOpenSessionIsTheDiagnosis) {
  struct Case {
    Obstacle obstacle;
    int send_errno;
    Diagnosis diagnosis;
  };
  for (const Case& one : {Case{Obstacle::no_route, ENETUNREACH, Diagnosis::not_sent},
                          Case{Obstacle::no_route, 0, Diagnosis::told_by_icmp},
                          Case{Obstacle::nobody_listens, 0, Diagnosis::told_by_icmp},
                          Case{Obstacle::prohibited, 0, Diagnosis::told_by_icmp}}) {
    World world(5);
    open_session(world);
    world.weather.drops = [](std::size_t, auto) { return true; };
    const std::uint64_t cookie = world.send(0, 1, 8);
    world.run_for(100ms);
    world.ends[0].link->unreachable(world.ends[1].address, one.obstacle, world.now, one.send_errno);
    world.run_for(1ms);
    EXPECT_FALSE(world.ends[0].sent[cookie].is_ended);
    world.run_for(100ms);
    world.ends[0].link->unreachable(world.ends[1].address, one.obstacle, world.now, 0);
    world.run_until_ended();
    EXPECT_EQ(world.ends[0].sent[cookie].status, Status::silent);
    EXPECT_EQ(world.ends[0].notices.back().diagnosis, one.diagnosis);
    EXPECT_EQ(world.ends[0].notices.back().obstacle, one.obstacle);
    EXPECT_EQ(world.ends[0].notices.back().send_errno, one.send_errno);
  }
}

TEST(LinkSession, AnObstacleThatIsPastIsNoDiagnosis) {
  World world(5);
  open_session(world);
  world.ends[0].link->unreachable(world.ends[1].address, Obstacle::no_route, world.now, ENETUNREACH);
  world.run_for(10ms);
  world.send(0, 1, 8);
  world.run_until_ended();
  world.weather.drops = [](std::size_t, auto) { return true; };
  world.send(0, 1, 8);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].notices.back().diagnosis, Diagnosis::nothing_heard);
}

TEST(LinkSession, ARestartedPeerEndsWhatWasPendingAndTheNextSubmitWorks) {
  World world(6);
  open_session(world);
  world.ends[0].sent.clear();
  world.ends[1].is_deaf = true;
  const std::uint64_t pending = world.send(0, 1, 50'000);
  world.run_for(50ms);
  world.restart(1);
  world.run_for(500ms);
  ASSERT_TRUE(world.ends[0].sent[pending].is_ended);
  EXPECT_EQ(world.ends[0].sent[pending].status, Status::restarted);
  EXPECT_EQ(world.ends[0].notices.back().status, Status::restarted);
  EXPECT_EQ(world.ends[0].link->counters().resets_received, 1U);
  const std::uint64_t next = world.send(0, 1, 50'000);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[next].status, Status::ok);
  EXPECT_TRUE(world.ends[1].received[next].is_complete);
  EXPECT_EQ(world.ends[0].link->facts(world.peer(0, 1)).epoch, world.ends[1].epoch);
}

TEST(LinkSession, ARestartedPeerThatSpeaksFirstReplacesTheSession) {
  World world(7);
  open_session(world);
  world.weather.drops = [](std::size_t from, auto) { return from == 0; };
  const std::uint64_t pending = world.send(0, 1, 50'000);
  world.run_for(5ms);
  world.ends[1].sent.clear();
  world.restart(1);
  world.weather.drops = [&](std::size_t from, auto bytes) {  // its segments arrive before it can send a reset
    return from == 0 && header_of(bytes).kind == wire::Kind::data && !world.ends[0].sent[pending].is_ended;
  };
  const std::uint64_t first = world.send(1, 0, 8);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[pending].status, Status::restarted);
  EXPECT_EQ(world.ends[1].sent[first].status, Status::ok);
  world.expect_consistent();
}

TEST(LinkSession, DisconnectTellsThePeerAndEndsWhatIsPending) {
  World world(11);
  open_session(world);
  const std::uint64_t queued = world.send(0, 1, 5 << 20);
  const std::uint64_t back = world.send(1, 0, 5 << 20);
  world.run_for(100us);
  const PeerHandle handle = world.peer(0, 1);
  world.ends[0].link->disconnect(handle, world.now);
  EXPECT_EQ(world.ends[0].link->submit(handle, {}, world.now), Status::stale);
  world.run_for(1ms);
  EXPECT_EQ(world.ends[0].sent[queued].status, Status::canceled);
  EXPECT_EQ(world.ends[1].sent[back].status, Status::refused);
  EXPECT_EQ(world.ends[1].link->counters().closes_received, 1U);
  EXPECT_EQ(world.ends[0].link->peer_count(), 0U);
  world.expect_consistent();
  // Both may open a new session.
  const std::uint64_t next = world.send(1, 0, 8);
  world.run_until_ended();
  EXPECT_EQ(world.ends[1].sent[next].status, Status::ok);
}

TEST(LinkSession, CancelTakesBackOnlyWhatIsNotOut) {
  World world(12);
  world.weather.drops = [](std::size_t, auto) { return true; };
  std::vector<std::uint64_t> cookies;
  for (std::size_t size : {8UL, 3UL, 0UL, 20UL, 700UL, 2000UL, 100'000UL, 9UL})
    cookies.push_back(world.send(0, 1, size));
  for (const std::size_t i : {1, 4, 5, 7}) EXPECT_TRUE(world.cancel(0, cookies[i]));
  EXPECT_FALSE(world.cancel(0, cookies[1]));
  EXPECT_FALSE(world.cancel(0, 999));
  world.weather.drops = nullptr;
  world.run_until_ended();
  for (std::size_t i = 0; i < cookies.size(); ++i) {
    const bool is_cancelled = i == 1 || i == 4 || i == 5 || i == 7;
    EXPECT_EQ(world.ends[0].sent[cookies[i]].status, is_cancelled ? Status::canceled : Status::ok) << i;
    EXPECT_EQ(world.ends[1].received.contains(cookies[i]), !is_cancelled) << i;
    EXPECT_FALSE(world.cancel(0, cookies[i]));
  }
  world.expect_consistent();
}

TEST(LinkSession, CancelInAnyOrderLeavesTheOthersWhole) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    World world(seed);
    std::vector<std::uint64_t> cookies;
    for (int i = 0; i < 60; ++i) cookies.push_back(world.send(0, 1, world.random() % 40));
    std::ranges::shuffle(cookies, world.random);
    for (int i = 0; i < 30; ++i) EXPECT_TRUE(world.cancel(0, cookies[i]));
    world.run_until_ended();
    for (int i = 0; i < 60; ++i) {
      EXPECT_EQ(world.ends[0].sent[cookies[i]].status, i < 30 ? Status::canceled : Status::ok);
      EXPECT_EQ(world.ends[1].received.contains(cookies[i]), i >= 30);
    }
    world.expect_consistent();
  }
}

TEST(LinkSession, PeersAreBoundedAndTheErrorSaysSo) {
  LinkOptions options;
  options.peers_max = 2;
  World world(13, options, 4);
  world.peer(0, 1);
  world.peer(0, 2);
  const auto refused = world.ends[0].link->peer(world.ends[3].address, kPathDatagram, world.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::no_memory);
  const auto narrow = world.ends[1].link->peer(world.ends[3].address, 500, world.now);
  ASSERT_FALSE(narrow);
  EXPECT_EQ(narrow.error().status, Status::invalid);
}

TEST(LinkSession, PeersAreShownWithTheirFacts) {
  World world(40, {}, 3);
  world.send(0, 1, 8);
  world.run_until_ended();
  world.peer(0, 2);
  const Link& link = *world.ends[0].link;
  std::vector<PeerFacts> seen;
  link.for_each_peer(10, [&](const PeerFacts& facts) { seen.push_back(facts); });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].address, world.ends[1].address);
  EXPECT_TRUE(seen[0].is_connected);
  EXPECT_FALSE(seen[1].is_connected);
  seen.clear();
  link.for_each_peer(1, [&](const PeerFacts& facts) { seen.push_back(facts); });
  EXPECT_EQ(seen.size(), 1U);
  const PeerHandle handle = world.peer(0, 1);
  EXPECT_EQ(link.address(handle), world.ends[1].address);
  world.ends[0].link->disconnect(handle, world.now);
  EXPECT_EQ(link.address(handle), base::SocketAddress{});
}

}  // namespace
}  // namespace fairlead::link::testing
