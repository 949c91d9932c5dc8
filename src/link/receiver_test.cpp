#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

TEST(LinkDelivery, OneTinyMessageArrivesAndIsAcknowledged) {
  World world(1);
  world.send(0, 1, 8);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(world.ends[0].link->counters().resends, 0U);
  ASSERT_EQ(world.ends[0].notices.size(), 1U);
  EXPECT_EQ(world.ends[0].notices[0].kind, Notice::Kind::connected);
}

TEST(LinkDelivery, EverySizeArrivesWhole) {
  World world(2);
  for (std::size_t size :
       {0UL, 1UL, 7UL, 8UL, 767UL, 768UL, 769UL, 1375UL, 1376UL, 1377UL, 10'000UL, 65'536UL, 1'000'003UL}) {
    world.send(0, 1, size);
    world.send(1, 0, size, 3);
  }
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkDelivery, ManyPiecesArriveWhole) {
  World world(3);
  for (std::size_t size : {100UL, 1300UL, 70'000UL, 1'000'000UL}) world.send(0, 1, size, 1024);
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkDelivery, EmptyPiecesAmongOthersDoNoHarm) {
  World world(4);
  world.send(0, 1, 900, 1000);  // most pieces are empty
  world.send(0, 1, 1000, 1024);
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkDelivery, ZeroByteMessagesEndOnlyWithTheirAck) {
  World world(5);
  world.send(0, 1, 8);
  world.run_until_ended();
  world.weather.drops = [](std::size_t from, auto) { return from == 1; };  // no ACK comes
  const std::uint64_t cookie = world.send(0, 1, 0);
  world.run_for(100ms);
  EXPECT_FALSE(world.ends[0].sent[cookie].is_ended);
  EXPECT_TRUE(world.ends[1].received[cookie].is_complete);
  world.weather.drops = nullptr;
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkDelivery, MessagesThatWaitTogetherShareSegments) {
  World world(6);
  world.send(0, 1, 8);
  world.run_until_ended();
  const std::uint64_t before = world.ends[0].link->counters().segments_sent;
  for (int i = 0; i < 240; ++i) world.send(0, 1, 8);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(world.ends[0].link->counters().segments_sent - before, 10U);
}

TEST(LinkDelivery, TheLoneMessageIsOnePieceAndNotHeldBack) {
  World world(7);
  world.send(0, 1, 8);
  world.run_until_ended();
  Link& link = *world.ends[0].link;
  std::array<std::byte, 8> bytes{};
  const iovec piece{bytes.data(), bytes.size()};
  ASSERT_EQ(link.submit(world.peer(0, 1), {.envelope = {}, .pieces = {&piece, 1}, .size = 8, .wants_outcome = false},
                        world.now),
            Status::ok);
  Train train;
  ASSERT_TRUE(link.next_train(world.now, 65'000, 64, train));
  EXPECT_EQ(train.piece_count, 1U);
  EXPECT_EQ(train.bytes, 104U);
  EXPECT_FALSE(link.next_train(world.now, 65'000, 64, train));
}

TEST(LinkDelivery, TrainsHaveEqualSegments) {
  World world(8);
  world.send(0, 1, 8);
  world.run_for(1ms);  // greeted, and the path's MTU tested
  const std::uint64_t trains_before = world.ends[0].link->counters().trains_sent;
  world.send(0, 1, 100'000);
  world.run_until_ended();
  world.expect_all_delivered();
  const LinkCounters& counters = world.ends[0].link->counters();
  EXPECT_EQ(counters.chunks_sent, 100'000 / 1352 + 1);
  EXPECT_LE(counters.trains_sent - trains_before, 6U);
}

TEST(LinkDelivery, LargeDatagramsAreUsedWhereThePathCarriesThem) {
  World world(9);
  world.path_datagram = 65'000;
  world.send(0, 1, 1 << 20);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_LE(world.ends[0].link->counters().chunks_sent, 17U);
}

TEST(LinkDelivery, WithoutOutcomeItStillArrives) {
  World world(10);
  Link& link = *world.ends[0].link;
  std::array<std::byte, 2000> bytes{};
  const iovec piece{bytes.data(), 16};
  for (std::size_t i = 0; i < 16; ++i) bytes[i] = World::pattern(77, i);
  const wire::Envelope envelope{.key = 77 * 3, .cookie = 77, .a = 16};
  EXPECT_EQ(link.submit(world.peer(0, 1), {envelope, {&piece, 1}, 16, 0, false}, world.now), Status::ok);
  const iovec longer{bytes.data(), 2000};
  EXPECT_EQ(link.submit(world.peer(0, 1), {envelope, {&longer, 1}, 2000, 0, false}, world.now), Status::invalid);
  world.run_for(10ms);
  EXPECT_TRUE(world.ends[1].received[77].is_complete);
  EXPECT_EQ(link.counters().messages_pending, 0U);
  EXPECT_FALSE(link.next_outcome());
}

TEST(LinkDelivery, AnEngineMayTalkToItself) {
  World world(11);
  for (std::size_t size : {0UL, 8UL, 5000UL, 100'000UL}) world.send(0, 0, size);
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkDelivery, BoundsAnswerAgainAndTakeNothing) {
  LinkOptions options;
  options.command_depth = 10;
  options.data_depth = 3;
  World world(12, options);
  for (int i = 0; i < 10; ++i) world.send(0, 1, 8);
  for (int i = 0; i < 3; ++i) world.send(0, 1, 5000);
  EXPECT_EQ(world.try_send(0, 1, 8, 1000), Status::again);
  EXPECT_EQ(world.try_send(0, 1, 5000, 1001), Status::again);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(world.ends[0].link->counters().submits_refused, 2U);
}

TEST(LinkDelivery, AFullHotelOnlyDelays) {
  LinkOptions options;
  options.rooms_max = 8;
  World world(13, options, 3);
  for (int i = 0; i < 4; ++i) {
    world.send(0, 1, 40'000);
    world.send(0, 2, 40'000);
  }
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkDelivery, NoMoreLongMessagesAreOpenThanThePeerHasSlots) {
  LinkOptions options;
  options.reassembly_slots = 2;
  World world(14, options);
  for (int i = 0; i < 20; ++i) world.send(0, 1, 20'000);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(world.ends[1].link->counters().refused_sum(), 0U);
}

TEST(LinkDelivery, AReceiverThatIsSlowerLosesNothing) {
  World world(15);
  world.send(0, 1, 8);
  world.run_until_ended();
  for (int i = 0; i < 8; ++i) world.send(0, 1, 1 << 20);
  for (int i = 0; i < 50; ++i) {  // it stops for 3 ms again and again
    world.ends[1].is_deaf = true;
    world.run_for(3ms);
    world.ends[1].is_deaf = false;
    world.run_for(200us);
  }
  world.run_until_ended();
  world.expect_all_delivered();
}

}  // namespace
}  // namespace fairlead::link::testing
