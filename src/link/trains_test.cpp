// How full trains are: ends of messages and resends must not make many short trains.

#include "link/segment.hpp"
#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

constexpr std::uint32_t kTrainBytes = 65'507, kTrainDatagrams = 64;
constexpr std::uint32_t kFull = kTrainBytes / kPathDatagram;  // datagrams of a full train

LinkOptions wide() {
  LinkOptions options;
  options.window_bytes = 64 << 20;
  options.first_bytes = 64 << 20;
  return options;
}

/// Collects the trains that the near link sends; whether they arrive is up to the network.
std::vector<std::uint32_t> datagrams_of_trains(World& world) {
  std::vector<std::uint32_t> trains;
  Train train;
  while (world.ends[0].link->next_train(world.now, kTrainBytes, kTrainDatagrams, train))
    trains.push_back(train.datagrams);
  return trains;
}

TEST(LinkTrains, TheEndsOfMessagesDoNotCutThemShort) {
  World world(1, wide());
  open_session(world);
  for (int i = 0; i < 8; ++i) world.send(0, 1, 64 << 10);  // 48 whole segments and a short one each
  const std::vector<std::uint32_t> trains = datagrams_of_trains(world);
  ASSERT_EQ(trains.size(), (8U * 49 + kFull - 1) / kFull);
  for (std::size_t i = 0; i + 2 < trains.size(); ++i) EXPECT_EQ(trains[i], kFull) << i;
  world.run_until_ended();  // by the tail probe: none of these was put on the network
  world.expect_all_delivered();
}

TEST(LinkTrains, TheEndOfAMessageLeavesWithTheTrainThatItFollows) {
  World world(2, wide());
  open_session(world);
  for (int i = 0; i < 3; ++i) world.send(0, 1, 20 * 1352 + 100);
  const std::vector<std::uint32_t> trains = datagrams_of_trains(world);
  // 60 whole segments and 3 ends: 31 and an end, 29 and an end, an end.
  EXPECT_EQ(trains, (std::vector<std::uint32_t>{32, 30, 1}));
}

// The receiver works on the first half while the second one is sent.
TEST(LinkTrains, WhatNeedsTwoTrainsLeavesInHalves) {
  World world(7, wide());
  open_session(world);
  world.send(0, 1, 64 << 10);  // 49 segments
  EXPECT_EQ(datagrams_of_trains(world), (std::vector<std::uint32_t>{25, 24}));
  world.run_until_ended();
  world.send(0, 1, kFull * 1352);
  EXPECT_EQ(datagrams_of_trains(world), (std::vector<std::uint32_t>{kFull})) << "one train is enough";
  world.run_until_ended();
  world.send(0, 1, (2 * kFull + 1) * 1352);
  EXPECT_EQ(datagrams_of_trains(world).front(), kFull) << "two are not";
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkTrains, EndsOfLongSegmentsGoTogether) {
  World world(3, wide());
  world.path_datagram = 65'000;
  open_session(world);
  for (int i = 0; i < 16; ++i) world.send(0, 1, 64 << 10);  // a segment of 65,507 bytes and one of 269 each
  const std::vector<std::uint32_t> trains = datagrams_of_trains(world);
  EXPECT_LE(trains.size(), 16U + 16 / 4) << ::testing::PrintToString(trains);
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkTrains, TheEndOfALongMessageDoesNotWaitForOthersToEnd) {
  World world(6, wide());
  world.path_datagram = 65'000;
  open_session(world);
  for (int i = 0; i < 3; ++i) world.send(0, 1, 1 << 20);  // 16 long segments and a short one each
  Train train;
  int long_ones = 0;
  while (world.ends[0].link->next_train(world.now, kTrainBytes, kTrainDatagrams, train) &&
         train.datagram_size == 65'000)
    ++long_ones;
  EXPECT_GE(long_ones, 16);
  EXPECT_LE(long_ones, 16 + 4);
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkTrains, WhatIsSentAgainTakesNewSegmentsAlong) {
  LinkOptions options;
  options.window_bytes = options.first_bytes = 512 * 2304;  // the bytes close it, not the span of sequences
  World world(4, options);
  open_session(world);
  Link& link = *world.ends[0].link;
  bool is_lost = false;
  std::uint32_t most = 0;  // datagrams of a train with a segment that was sent again
  world.weather.drops = [&](std::size_t from, auto) { return from == 0 && !std::exchange(is_lost, true); };
  world.weather.refuses = [&, seen = std::uint64_t{0}](std::size_t from, const Train& train) mutable {
    if (from == 0 && link.counters().resends != std::exchange(seen, link.counters().resends))
      most = std::max(most, train.datagrams);
    return false;
  };
  for (int i = 0; i < 40; ++i) world.send(0, 1, 100 * 1352);  // more than the window takes
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(link.counters().resends, 1U);
  EXPECT_GT(most, 10U);
}

TEST(LinkTrains, MessagesOfManyPiecesAndWholeOnesAmongLongOnesAllArrive) {
  LinkOptions options = wide();
  options.reassembly_slots = 4;
  World world(5, options);
  open_session(world);
  world.weather.loss = 0.05;
  for (std::size_t i = 0; i < 200; ++i) world.send(0, 1, 800 + i * 517 % 30'000, 1 + i * 37 % 200);
  world.run_until_ended();
  world.expect_all_delivered();
}

// A stream of tiny messages: the first leave alone, then six full segments make a call. Neither end waits for all of
// the other's work.
TEST(LinkTrains, TinyMessagesLeaveWhenTheyAreWorthACall) {
  constexpr int kAlone = 4, kSegments = 6, kRecords = Block::kRecordsMax;
  World world(7);
  open_session(world);
  Link& near = *world.ends[0].link;
  const PeerHandle far = world.peer(0, 1);
  std::vector<int> eager_after, trains;
  for (int i = 1; i <= kAlone + 2 * kSegments * kRecords; ++i) {
    world.send(0, 1, 8);
    if (!near.is_eager(far)) continue;
    eager_after.push_back(i);
    for (const std::uint32_t datagrams : datagrams_of_trains(world)) trains.push_back(static_cast<int>(datagrams));
  }
  EXPECT_EQ(eager_after,
            (std::vector<int>{1, 2, 3, 4, kAlone + kSegments * kRecords, kAlone + 2 * kSegments * kRecords}));
  EXPECT_EQ(trains, (std::vector<int>{1, 1, 1, 1, kSegments, kSegments}));
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkTrains, CanceledTinyMessagesAreNoLongerCounted) {
  constexpr int kAlone = 4, kSegments = 6, kRecords = Block::kRecordsMax;
  World world(8);
  open_session(world);
  Link& near = *world.ends[0].link;
  const PeerHandle far = world.peer(0, 1);
  for (int i = 0; i < kAlone; ++i) {
    world.send(0, 1, 8);
    EXPECT_EQ(datagrams_of_trains(world).size(), 1U);
  }
  std::vector<std::uint64_t> cookies;
  for (int i = 0; i < kSegments * kRecords; ++i) cookies.push_back(world.send(0, 1, 8));
  EXPECT_TRUE(near.is_eager(far));
  for (int i = 0; i < kRecords; ++i) EXPECT_TRUE(world.cancel(0, cookies[static_cast<std::size_t>(i)]));
  EXPECT_FALSE(near.is_eager(far));
  near.disconnect(far, world.now);
  EXPECT_TRUE(near.is_eager(far)) << "nobody there: nothing to wait for";
}

TEST(LinkTrains, SixSegmentsOfTinyMessagesAreAcknowledgedAtOnce) {
  World world(9);
  open_session(world);
  for (const std::uint32_t segments : {5U, 6U}) {
    world.run_for(std::chrono::milliseconds(1));
    for (std::uint32_t i = 0; i < segments * Block::kRecordsMax; ++i) world.send(0, 1, 8);
    Train train;
    ASSERT_TRUE(world.ends[0].link->next_train(world.now, kTrainBytes, kTrainDatagrams, train));
    ASSERT_EQ(train.datagrams, segments);
    Link& far = *world.ends[1].link;
    std::uint32_t taken = 0;
    for (std::size_t i = 0; i < train.piece_count; ++i) {  // a datagram is one piece
      far.receive(world.ends[0].address,
                  {static_cast<const std::byte*>(train.pieces[i].iov_base), train.pieces[i].iov_len}, world.now,
                  kPathDatagram);
      while (far.next_delivery()) ++taken;
    }
    EXPECT_EQ(taken, segments * Block::kRecordsMax);
    EXPECT_EQ(far.next_train(world.now, kTrainBytes, kTrainDatagrams, train), segments == 6);
    world.run_until_ended();  // by the ACK's delay, or by the tail probe: this one was put nowhere
  }
  world.expect_consistent();
}

}  // namespace
}  // namespace fairlead::link::testing
