// Incast: many senders take turns, no sender is limited without need, and lost grants do no harm.

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

constexpr std::size_t kSenders = 20;

/// Less than each sender of the crowd has to send.
LinkOptions small_window() {
  LinkOptions options;
  options.window_bytes = 128 << 10;
  return options;
}

/// Every sender opens a session with end 0, then sends it this much.
void crowd(World& world, std::size_t size, int messages) {
  for (std::size_t from = 1; from < world.ends.size(); ++from) world.send(from, 0, 8);
  world.run_for(20ms);
  for (int i = 0; i < messages; ++i) {
    for (std::size_t from = 1; from < world.ends.size(); ++from) world.send(from, 0, size);
  }
}

std::uint64_t bytes_towards(const World& world, std::size_t to) {
  auto rest = world.in_flight;
  std::uint64_t bytes = 0;
  for (; !rest.empty(); rest.pop()) bytes += rest.top().to == to ? rest.top().bytes.size() : 0;
  return bytes;
}

TEST(LinkGrants, OneSenderAloneIsNeverHeldBack) {
  World world(1, {}, 2);
  crowd(world, 1 << 20, 4);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(world.ends[0].link->counters().grants_given, 0U);
  EXPECT_EQ(world.ends[1].link->counters().turns_asked, 0U);
  EXPECT_TRUE(world.ends[1].link->is_idle(world.peer(1, 0)));
}

TEST(LinkGrants, ACrowdTakesTurnsAndLittleIsOnItsWay) {
  World world(2, small_window(), kSenders + 1);
  world.path_datagram = 8972;
  crowd(world, 300'000, 2);
  world.run_for(2ms);  // all have been told
  // A short message would go at once, but not a long one.
  EXPECT_FALSE(world.ends[1].link->is_idle(world.peer(1, 0)));
  std::uint64_t most = 0;
  for (int i = 0; i < 200 && !world.is_all_ended(); ++i) {
    world.run_for(20us);
    most = std::max(most, bytes_towards(world, 0));
  }
  EXPECT_LE(most, 2 * LinkOptions{}.granted_bytes);
  EXPECT_GT(most, 0U);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(world.ends[0].link->counters().grants_given, kSenders * 10);
}

TEST(LinkGrants, LostGrantsAndLostQuestionsOnlyDelay) {
  World world(3, small_window(), kSenders + 1);
  world.weather.drops = [&](std::size_t, std::span<const std::byte> bytes) {
    return static_cast<wire::Kind>(bytes[1]) == wire::Kind::ack && world.random() % 2 == 0;
  };
  crowd(world, 200'000, 2);
  world.run_until_ended(10s);
  world.expect_all_delivered();
  EXPECT_GT(world.ends[0].link->counters().grants_expired, 0U);
}

TEST(LinkGrants, ShortMessagesOfASenderHeldBackGoAtOnce) {
  World world(4, small_window(), kSenders + 1);
  crowd(world, 200'000, 2);
  world.run_for(1ms);
  const std::uint64_t word = world.send(1, 0, 8);
  world.run_for(200us);
  EXPECT_TRUE(world.ends[1].sent[word].is_ended);
  EXPECT_FALSE(world.is_all_ended());
  world.run_until_ended();
  world.expect_all_delivered();
}

TEST(LinkGrants, WhoLeavesWithATurnOrInTheQueueMakesRoom) {
  World world(5, small_window(), kSenders + 1);
  crowd(world, 200'000, 2);
  world.run_for(500us);
  for (std::size_t from = 1; from <= kSenders / 2; ++from) world.ends[from].link->disconnect_all(world.now);
  world.ends[0].link->disconnect(world.peer(0, kSenders), world.now);
  world.run_until_ended();
  world.expect_consistent();
  world.send(1, 0, 200'000);
  world.run_until_ended();
  world.run_for(2s);
  for (const World::End& end : world.ends) EXPECT_EQ(end.link->next_deadline(), base::kNever);
}

}  // namespace
}  // namespace fairlead::link::testing
