// The timer of an ACK. A thread that sleeps until the next deadline must not wake for an ACK that an answer has
// carried.

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

TEST(AckTimer, EndsWhenAnAnswerCarriesTheAck) {
  World world(1);
  world.send(0, 1, 8);
  world.run_until_ended();
  const Duration ack_after = LinkOptions{}.ack_after;
  for (std::size_t turn = 0; turn < 50; ++turn) {
    const std::size_t from = turn % 2;
    world.send(from, 1 - from, 8);
    world.run_for(2us);
    EXPECT_GT(world.ends[from].link->next_deadline(), world.now + ack_after) << turn;
    world.run_for(world.weather.delay);
    ASSERT_EQ(world.ends[1 - from].completed.size(), turn / 2 + 2 - from) << turn;
    EXPECT_LE(world.ends[1 - from].link->next_deadline(), world.now + ack_after) << turn;
  }
  world.run_until_ended();
  world.expect_all_delivered();
}

// The timer also starts the watch for peers that do not continue a message.
TEST(AckTimer, IsKeptForTheStallWatch) {
  World world(2);
  world.send(0, 1, 8);
  world.send(1, 0, 8);
  world.run_until_ended();
  const std::size_t bytes = 20 * kPathDatagram;
  bool is_cut = false;
  world.weather.drops = [&](std::size_t from, std::span<const std::byte>) { return is_cut && from == 0; };
  world.send(0, 1, bytes);
  while (world.ends[1].received.size() < 2 && world.step()) {
  }
  is_cut = true;  // the rest of the message never comes
  for (int answer = 0; answer < 20; ++answer) {
    world.send(1, 0, 8);
    world.run_for(1us);
  }
  world.run_for(2 * LinkOptions{}.give_up_after);
  EXPECT_FALSE(world.ends[1].notices.empty());
}

}  // namespace
}  // namespace fairlead::link::testing
