// How full trains are: the ends of messages, and what is sent again, must not make many short ones.

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

/// Collects what the near link has to send, in trains; what of it arrives is the network's affair.
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
  for (std::size_t i = 0; i + 1 < trains.size(); ++i) EXPECT_EQ(trains[i], kFull) << i;
  world.run_until_ended();  // by the tail probe: none of these was put on the network
  world.expect_all_delivered();
}

TEST(LinkTrains, TheEndOfAMessageLeavesWithTheTrainThatItFollows) {
  World world(2, wide());
  open_session(world);
  for (int i = 0; i < 3; ++i) world.send(0, 1, 20 * 1352 + 100);
  const std::vector<std::uint32_t> trains = datagrams_of_trains(world);
  // 60 whole segments and 3 ends: 43 and an end, 17 and an end, an end.
  EXPECT_EQ(trains, (std::vector<std::uint32_t>{kFull, 60 - (kFull - 1) + 1, 1}));
}

TEST(LinkTrains, EndsOfLongSegmentsGoTogether) {
  World world(3, wide());
  world.path_datagram = 65'000;
  open_session(world);
  for (int i = 0; i < 16; ++i) world.send(0, 1, 64 << 10);  // a segment of 65,000 bytes and one of 776 each
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

}  // namespace
}  // namespace fairlead::link::testing
