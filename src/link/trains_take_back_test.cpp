// Trains that the path does not take leave later, in their order, and nothing counts as lost.

#include "link/world_for_tests.hpp"
#include "wire/segment.hpp"

namespace fairlead::link::testing {
namespace {

/// The header of the train's first datagram.
wire::Header header_of(const Train& train) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < train.piece_count && bytes.size() < train.datagram_size; ++i) {
    const auto* begin = static_cast<const std::byte*>(train.pieces[i].iov_base);
    bytes.insert(bytes.end(), begin, begin + train.pieces[i].iov_len);
  }
  bytes.resize(train.datagram_size);
  return wire::decode(bytes)->header;
}

TEST(LinkTakeBack, DataGoesOutNextAndIsNeitherLostNorResent) {
  World world(1);
  open_session(world);
  Link& link = *world.ends[0].link;
  const std::uint64_t datagrams = link.counters().datagrams_sent, trains = link.counters().trains_sent;
  std::vector<std::uint32_t> refused, taken;
  world.weather.refuses = [&](std::size_t from, const Train& train) {
    if (from != 0) return false;
    const bool is_refused = refused.size() < 3;
    (is_refused ? refused : taken).push_back(header_of(train).sequence.value);
    return is_refused;
  };
  world.send(0, 1, 20 * 1352);
  world.run_until_ended();
  world.expect_all_delivered();
  ASSERT_EQ(refused.size(), 3U);
  EXPECT_EQ(refused[0], refused[2]);
  ASSERT_FALSE(taken.empty());
  EXPECT_EQ(taken[0], refused[0]);
  EXPECT_EQ(link.counters().resends, 0U);
  EXPECT_EQ(link.counters().trains_returned, 3U);
  EXPECT_EQ(link.counters().trains_sent - trains, 1U);
  EXPECT_EQ(link.counters().datagrams_sent - datagrams, 20U);
  EXPECT_EQ(world.ends[1].link->counters().refused_sum(), 0U);
}

TEST(LinkTakeBack, GreetingsAndAcksAreSentAgainToo) {
  World world(2);
  std::array<bool, std::to_underlying(wire::Kind::hello_retry) + 1> was_refused{};
  world.weather.refuses = [&](std::size_t, const Train& train) {
    return !std::exchange(was_refused[static_cast<std::size_t>(header_of(train).kind)], true);
  };
  const base::Instant begin = world.now;
  world.send(0, 1, 8);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_LE(world.now - begin, 1ms);
  for (wire::Kind kind : {wire::Kind::hello, wire::Kind::hello_ack, wire::Kind::data, wire::Kind::ack}) {
    EXPECT_TRUE(was_refused[static_cast<std::size_t>(kind)]) << static_cast<int>(kind);
  }
  world.ends[0].link->disconnect(world.peer(0, 1), world.now);
  world.drain(0);
  EXPECT_TRUE(was_refused[static_cast<std::size_t>(wire::Kind::close)]);
  world.drain(0);
  world.run_for(1ms);
  EXPECT_EQ(world.ends[1].link->counters().closes_received, 1U);
  EXPECT_EQ(world.ends[0].link->counters().closes_sent, 1U);
}

TEST(LinkTakeBack, APathThatRefusesNowAndThenHarmsNothing) {
  World world(3);
  open_session(world);
  world.weather.loss = 0.02;
  world.weather.spacing = 1us;
  world.weather.refuses = [&](std::size_t, const Train&) { return world.random() % 3 == 0; };
  for (int i = 0; i < 30; ++i) {
    world.send(0, 1, 100'000);
    world.send(1, 0, 3'000);
    world.send(1, 0, 64);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(world.ends[0].link->counters().trains_returned, 10U);
}

TEST(LinkTakeBack, APathThatNeverTakesAnythingEndsTheMessage) {
  World world(4);
  open_session(world);
  world.weather.refuses = [](std::size_t from, const Train&) { return from == 0; };
  const std::uint64_t cookie = world.send(0, 1, 3000);
  world.run_until_ended(10s);
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::silent);
  world.expect_consistent();
}

TEST(LinkTakeBack, OnlyTheTrainJustHandedOutIsTakenBack) {
  World world(5);
  open_session(world);
  Link& link = *world.ends[0].link;
  world.send(0, 1, 8);
  Train train;
  ASSERT_TRUE(link.next_train(world.now, 65'000, 64, train));
  link.take_back(train, world.now);
  link.take_back(train, world.now);
  EXPECT_EQ(link.counters().trains_returned, 1U);
  ASSERT_TRUE(link.next_train(world.now, 65'000, 64, train));
  link.expire(world.now);
  link.take_back(train, world.now);
  EXPECT_EQ(link.counters().trains_returned, 1U);
}

}  // namespace
}  // namespace fairlead::link::testing
