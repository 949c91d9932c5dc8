// A peer that is heard but finishes nothing: its session ends, and its resources are freed.

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

/// End 0, with a deaf end 1. The test speaks for end 1, with the token that it was given.
class Stalled {
 public:
  explicit Stalled(std::uint64_t seed) : world(seed) {
    world.weather.drops = [&](std::size_t from, auto bytes) {
      if (from == 1 && header_of(bytes).kind == wire::Kind::data) header = header_of(bytes);
      return from == 1 && drops_data && header_of(bytes).kind == wire::Kind::data && ++data > 5;
    };
    open_session(world);
  }

  /// Sends a harmless segment every 100 ms as long as end 0 has a session; returns how long that was. With
  /// `has_traffic` end 0 sends, and all but its first segment is acknowledged.
  Duration speak(Duration most, bool has_traffic = false) {
    const Instant begin = world.now;
    header.kind = wire::Kind::ack;
    header.flags = 0;
    while (world.now - begin < most && world.ends[0].link->counters().sessions_lost == 0) {
      if (has_traffic) world.send(0, 1, 8);
      world.run_for(50ms);
      std::vector<std::byte> bytes(wire::kSegmentHeaderBytes);
      wire::encode(header, bytes.data());
      wire::add_checksum(bytes, {});
      world.ends[0].link->receive(world.ends[1].address, bytes, world.now, kPathDatagram);
      if (has_traffic) header.ack_bitmap = header.ack_bitmap << 1 | 1;
      world.run_for(50ms);
    }
    return world.now - begin;
  }

  World world;
  wire::Header header;
  bool drops_data = false;
  int data = 0;
};

TEST(LinkStall, AMessageThatIsBegunAndNotEndedEndsItsSession) {
  Stalled stalled(1);
  stalled.drops_data = true;
  stalled.world.send(1, 0, 100'000);
  stalled.world.run_for(1ms);
  ASSERT_EQ(stalled.world.ends[0].link->facts(stalled.world.peer(0, 1)).messages_arriving, 1U);
  stalled.world.ends[1].is_deaf = true;
  const Duration span = stalled.speak(20s);
  EXPECT_GE(span, 5s);
  EXPECT_LE(span, 6500ms);
  const auto& notices = stalled.world.ends[0].notices;
  EXPECT_EQ(notices.back().status, Status::silent);
  EXPECT_EQ(notices.back().diagnosis, Diagnosis::stuck);
  EXPECT_EQ(std::ranges::count(notices, Notice::Kind::reassembly_lost, &Notice::kind), 1);
}

TEST(LinkStall, WhoAcknowledgesAnythingButTheOldestIsGivenUp) {
  Stalled stalled(2);
  stalled.world.ends[1].is_deaf = true;
  const std::uint64_t oldest = stalled.world.send(0, 1, 8);
  stalled.world.run_for(1ms);
  const Duration span = stalled.speak(6500ms, true);
  EXPECT_GE(span, 4s);
  EXPECT_LT(span, 6500ms);
  EXPECT_EQ(stalled.world.ends[0].sent[oldest].status, Status::silent);
}

// Short messages always wait, more than the line carries; the long message still gets its turns.
TEST(LinkStall, AStreamOfShortMessagesDoesNotHoldUpALongOne) {
  World world(4);
  open_session(world);
  world.weather.spacing = 20us;
  std::uint64_t cookie = 1'000'000;
  const auto fill = [&] {
    while (world.try_send(0, 1, 700, cookie) == Status::ok) ++cookie;
  };
  fill();
  const std::uint64_t bulk = world.send(0, 1, 200'000);
  for (int i = 0; i < 10'000 && !world.ends[0].sent[bulk].is_ended; ++i) {
    world.run_for(100us);
    ASSERT_GT(world.ends[0].link->facts(world.peer(0, 1)).messages_queued, 1000U) << "nobody is in its way";
    fill();
  }
  EXPECT_TRUE(world.ends[0].sent[bulk].is_ended);
  EXPECT_EQ(world.ends[0].sent[bulk].status, Status::ok);
}

TEST(LinkStall, ASlowMessageThatGoesOnIsWaitedFor) {
  World world(3);
  open_session(world);
  int count = 0;
  world.weather.drops = [&](std::size_t from, auto bytes) {
    return from == 1 && header_of(bytes).kind == wire::Kind::data && ++count % 10 != 0;
  };
  const std::uint64_t cookie = world.send(1, 0, 20'000);
  world.run_until_ended(120s);
  EXPECT_EQ(world.ends[1].sent[cookie].status, Status::ok);
  EXPECT_EQ(world.ends[0].link->counters().sessions_lost, 0U);
}

}  // namespace
}  // namespace fairlead::link::testing
