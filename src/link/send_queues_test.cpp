// Long messages that are taken back while the peer stands still, or has received half of them.

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

using namespace std::chrono_literals;

std::size_t lost_arrivals(const World::End& end) {
  return static_cast<std::size_t>(std::ranges::count_if(end.notices, [](const Notice& notice) {
    return notice.kind == Notice::Kind::reassembly_lost && notice.status == Status::refused;
  }));
}

TEST(LinkCancel, EndsAtOnceThoughThePeerStandsStill) {
  for (const std::size_t size : {2000UL, 1'000'000UL}) {  // one segment and many, of which some are cut
    World world(1, {}, 2);
    world.path_datagram = 9000;
    open_session(world);
    world.ends[1].is_deaf = true;
    const std::uint64_t cookie = world.send(0, 1, size);
    world.run_for(50ms);
    ASSERT_FALSE(world.ends[0].sent[cookie].is_ended);
    EXPECT_TRUE(world.cancel(0, cookie));
    EXPECT_FALSE(world.cancel(0, cookie)) << "once";
    world.drain(0);
    EXPECT_TRUE(world.ends[0].sent[cookie].is_ended);
    EXPECT_EQ(world.ends[0].sent[cookie].status, Status::canceled);
    EXPECT_EQ(world.ends[0].link->counters().messages_pending, 0U);
    world.ends[1].is_deaf = false;
    const std::uint64_t next = world.send(0, 1, size);
    world.run_until_ended();
    world.run_for(100ms);
    EXPECT_EQ(world.ends[0].sent[next].status, Status::ok) << "what is behind it goes on";
    EXPECT_GT(world.ends[0].link->counters().voids_sent, 0U);
    EXPECT_EQ(world.ends[0].link->counters().segments_in_flight, 0U);
    EXPECT_EQ(world.ends[0].link->counters().sessions_lost, 0U);
    world.expect_consistent();
  }
}

// An engine that ends waits for its messages, unless they were cancelled.
TEST(LinkCancel, WhatIsCancelledIsOwedToNobody) {
  for (const std::size_t size : {100UL, 2000UL, 1'000'000UL}) {  // a copy, one segment, many segments
    SCOPED_TRACE(size);
    World world(6);
    open_session(world);
    EXPECT_FALSE(world.ends[0].link->is_owing());
    world.ends[1].is_deaf = true;
    const std::uint64_t cookie = world.send(0, 1, size);
    world.run_for(50ms);
    EXPECT_TRUE(world.ends[0].link->is_owing());
    EXPECT_EQ(world.cancel(0, cookie), size > 100) << "the copy that was sent ends as usual";
    EXPECT_FALSE(world.ends[0].link->is_owing());
  }
}

TEST(LinkCancel, WhatHasComeInPartIsGivenBack) {
  World world(2);
  open_session(world);
  constexpr int kMessages = 200;  // more than a peer has slots
  for (int i = 0; i < kMessages; ++i) {
    const std::uint64_t cookie = world.send(0, 1, 1'000'000);
    while (!world.ends[1].received.contains(cookie)) ASSERT_TRUE(world.step());
    EXPECT_TRUE(world.cancel(0, cookie));
    world.run_for(5ms);
    EXPECT_FALSE(world.ends[1].received.contains(cookie));
  }
  EXPECT_EQ(lost_arrivals(world.ends[1]), static_cast<std::size_t>(kMessages));
  EXPECT_GE(world.ends[1].link->counters().voids_received, static_cast<std::uint64_t>(kMessages));
  const std::uint64_t next = world.send(0, 1, 1'000'000);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[next].status, Status::ok);
  world.expect_consistent();
}

// A late chunk, overtaken by the void segment of its message, must not begin that message again.
TEST(LinkCancel, LateChunksFindNobody) {
  World world(3);
  open_session(world);
  world.weather.delay = 20us;
  const std::uint64_t cookie = world.send(0, 1, 20'000);
  std::vector<std::vector<std::byte>> late;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    if (from != 0 || bytes.size() < 1000) return false;
    late.emplace_back(bytes.begin(), bytes.end());
    return true;
  };
  world.run_for(1ms);
  ASSERT_GT(late.size(), 3U);
  EXPECT_TRUE(world.cancel(0, cookie));
  world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
    return from == 0 && bytes.size() > 1000;
  };
  while (world.ends[1].link->counters().voids_received == 0) ASSERT_TRUE(world.step());
  for (const auto& bytes : late) world.inject(0, 1, bytes);
  world.weather.drops = nullptr;
  world.run_until_ended();
  world.run_for(100ms);
  EXPECT_FALSE(world.ends[1].received.contains(cookie));
  EXPECT_EQ(world.ends[1].link->facts(world.peer(1, 0)).messages_arriving, 0U);
  EXPECT_EQ(world.ends[0].link->counters().segments_in_flight, 0U);
  world.expect_consistent();
}

TEST(LinkCancel, AMessageThatIsThereInFullStays) {
  World world(4);
  open_session(world);
  const std::uint64_t cookie = world.send(0, 1, 100'000);
  while (!world.ends[1].received.contains(cookie) || !world.ends[1].received[cookie].is_complete)
    ASSERT_TRUE(world.step());
  EXPECT_TRUE(world.cancel(0, cookie)) << "its last ACK is on the way";
  world.run_until_ended();
  world.run_for(100ms);
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::canceled);
  EXPECT_TRUE(world.ends[1].received[cookie].is_complete);
  EXPECT_EQ(lost_arrivals(world.ends[1]), 0U);
}

TEST(LinkCancel, TheLossOfThePeerTellsItNotAgain) {
  World world(5);
  open_session(world);
  world.ends[1].is_deaf = true;
  const std::uint64_t cookie = world.send(0, 1, 100'000);
  world.run_for(10ms);
  EXPECT_TRUE(world.cancel(0, cookie));
  world.run_for(20s);  // drain() would find a second outcome
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::canceled);
  EXPECT_EQ(world.ends[0].link->counters().sessions_lost, 1U);
  world.expect_consistent();
}

}  // namespace
}  // namespace fairlead::link::testing
