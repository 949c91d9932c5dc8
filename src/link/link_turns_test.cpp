// How peers share the link's bandwidth: by bytes, and no peer waits for more than a round.

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

/// Sessions from end 0 to all others, with nothing pending.
void open_sessions(World& world) {
  for (std::size_t to = 1; to < world.ends.size(); ++to) world.send(0, to, 8);
  world.run_until_ended();
  world.run_for(10ms);
}

TEST(LinkTurns, AmongAnElephantAndAHundredMiceEachMouseLeavesWithinOneRound) {
  World world(1, {}, 102);
  open_sessions(world);
  world.send(0, 1, 100 << 20);
  Train train;
  Link& link = *world.ends[0].link;
  ASSERT_TRUE(link.next_train(world.now, 65'000, 64, train));  // the elephant is on its way, and stays ready
  for (std::size_t mouse = 2; mouse < 102; ++mouse) world.send(0, mouse, 64);
  std::uint64_t elephant_bytes = 0;
  std::size_t mice = 0;
  while (mice < 100 && link.next_train(world.now, 65'000, 64, train)) {
    const bool is_elephant = world.index_of(train.to) == 1;
    mice += !is_elephant;
    if (is_elephant) elephant_bytes += train.bytes;
  }
  EXPECT_EQ(mice, 100U);
  EXPECT_LE(elephant_bytes, 65'000U);
}

TEST(LinkTurns, APeerOfShortTrainsGetsAsManyBytesAsOneOfLongOnes) {
  LinkOptions options;
  options.window_bytes = options.first_bytes = 64 << 20;
  options.window_segments = 4096;
  World world(2, options, 3);
  open_sessions(world);
  world.send(0, 1, 4 << 20);
  // Each of these is longer than the one before, so no two share a train.
  for (std::size_t i = 0; i < 1000; ++i) world.send(0, 2, 800 + i % 500);
  std::array<std::uint64_t, 3> bytes{};
  Train train;
  while (bytes[2] < 500'000 && world.ends[0].link->next_train(world.now, 65'000, 64, train)) {
    bytes[world.index_of(train.to)] += train.bytes + std::uint64_t{train.datagrams} * options.segment_overhead;
  }
  EXPECT_GE(bytes[2], 500'000U);
  EXPECT_NEAR(static_cast<double>(bytes[1]), static_cast<double>(bytes[2]), 110'000.0);
}

}  // namespace
}  // namespace fairlead::link::testing
