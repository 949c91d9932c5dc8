// Sealed sessions: messages arrive whole, nothing is in the clear, and two hellos make one session.

#include <gtest/gtest.h>

#include "link/sealed_world_for_tests.hpp"
#include "wire/segment.hpp"

namespace fairlead::link {
namespace {

using namespace testing;

TEST_P(LinkSeal, MessagesOfAllLengthsArrive) {
  World world(1, {}, 2, sealing(1));
  for (const std::size_t size : {0U, 1U, 8U, 100U, 768U, 1'400U, 5'000U, 300'000U}) {
    world.send(0, 1, size, size > 1000 ? 7 : 1);
    world.send(1, 0, size);
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(counted(world, 0).sessions_sealed, 1U);
  EXPECT_EQ(counted(world, 1).sessions_sealed, 1U);
  EXPECT_TRUE(facts_of(world, 0).is_sealed && facts_of(world, 1).is_sealed);
}

TEST_P(LinkSeal, NothingOfAMessageIsInTheClear) {
  World world(2, {}, 2, sealing(2));
  std::size_t datagrams = 0;
  world.weather.drops = [&](std::size_t, std::span<const std::byte> bytes) {
    const auto frame = wire::decode(bytes);
    EXPECT_TRUE(frame);
    const wire::Kind kind = frame->header.kind;
    if (kind == wire::Kind::hello_retry) return false;
    EXPECT_TRUE(frame->is_sealed()) << static_cast<int>(kind);
    // World's pattern is known: no eight bytes of it may be anywhere.
    for (std::uint64_t cookie = 1; cookie < 5; ++cookie) {
      std::array<std::byte, 8> text;
      for (std::size_t i = 0; i < text.size(); ++i) text[i] = World::pattern(cookie, i);
      EXPECT_TRUE(std::ranges::search(bytes, text).empty());
    }
    ++datagrams;
    return false;
  };
  for (const std::size_t size : {8U, 600U, 20'000U}) world.send(0, 1, size);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(datagrams, 15U);
}

TEST_P(LinkSeal, InWeatherOfAllKindsNothingIsLostOrDamaged) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    World world(seed, {}, 2, sealing(seed));
    world.weather.loss = world.weather.repeat = 0.05;
    world.weather.damage = 0.02;
    world.weather.jitter = 300us;
    for (int i = 0; i < 40; ++i) {
      world.send(0, 1, world.random() % 900);
      world.send(1, 0, world.random() % 40'000, 1 + world.random() % 9);
    }
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_GT(refused(world, 0, Refusal::bad_tag) + refused(world, 1, Refusal::bad_tag), 0U) << seed;
    EXPECT_GT(refused(world, 0, Refusal::replayed) + refused(world, 1, Refusal::replayed), 0U) << seed;
  }
}

TEST_P(LinkSeal, ReorderingByTheWholeWindowLosesNothing) {
  for (const Duration jitter : {Duration(200us), Duration(20ms)}) {
    World world(3, {.window_segments = 4096, .window_bytes = 64U << 20}, 2, sealing(3));
    world.weather.spacing = 1us;
    world.weather.jitter = jitter;  // up to 200 and up to 20,000 positions
    for (int i = 0; i < 30; ++i) world.send(0, 1, 200'000);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(refused(world, 1, Refusal::bad_tag), 0U);
  }
}

TEST_P(LinkSeal, GreetingsThatCrossMakeOneSession) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    World world(seed, {}, 2, sealing(seed));
    world.weather.jitter = Duration(seed % 7) * 40'000 + 1ns;
    if (seed % 3 == 2) world.weather.loss = 0.3;
    for (int i = 0; i < 5; ++i) {
      world.send(0, 1, 100);
      world.send(1, 0, 100);
    }
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_opened, 1U) << seed;
    EXPECT_EQ(counted(world, 1).sessions_opened, 1U) << seed;
  }
}

// The second greets at any step of the first one's greeting, and datagrams overtake each other.
TEST_P(LinkSeal, GreetingsThatCrossAtAnyStepMakeOneSession) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    World world(seed, {}, 2, sealing(seed));
    world.weather.jitter = 150us;
    world.send(0, 1, 100);
    world.run_for(Duration(static_cast<std::int64_t>(seed) * 3'000));
    world.send(1, 0, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_opened, 1U) << seed;
    EXPECT_EQ(counted(world, 1).sessions_opened, 1U) << seed;
  }
}

// Each end has answered the other's hello when the answers arrive.
TEST_P(LinkSeal, GreetingsThatAreBothAnsweredMakeOneSession) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    World world(seed, {}, 2, sealing(seed));
    bool is_late = false;
    world.weather.drops = [&](std::size_t from, std::span<const std::byte> bytes) {
      if (is_late || header_of(bytes).kind != wire::Kind::hello_ack) return false;
      world.inject(from, 1 - from, {bytes.begin(), bytes.end()}, Duration(20us) + seed * 5us);
      return is_late = true;
    };
    world.send(1, 0, 100);
    world.run_for(70us);
    ASSERT_TRUE(is_late);
    world.send(0, 1, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_opened, 1U) << seed;
    EXPECT_EQ(counted(world, 1).sessions_opened, 1U) << seed;
  }
}

TEST_P(LinkSeal, ARestartedPeerIsMetAnewAfterItsNewLifeIsProven) {
  World world(5, {}, 2, sealing(5));
  open_session(world);
  world.restart(1);
  const std::uint64_t lost = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[lost].status, Status::restarted);
  EXPECT_EQ(counted(world, 0).resets_doubted, 1U);
  world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(counted(world, 1).messages_delivered, 1U);
  EXPECT_TRUE(facts_of(world, 0).is_sealed);
}

TEST_P(LinkSeal, ARestartedPeerThatSpeaksFirstIsMetAnew) {
  World world(6, {}, 2, sealing(6));
  open_session(world);
  world.restart(1);
  const std::uint64_t cookie = world.send(1, 0, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[1].sent[cookie].status, Status::ok);
  EXPECT_EQ(counted(world, 0).sessions_opened, 2U);
  ASSERT_NE(lost_notice(world, 0), nullptr);
  EXPECT_EQ(lost_notice(world, 0)->status, Status::restarted);
}

TEST_P(LinkSeal, ACloseOfASealedSessionIsBelieved) {
  World world(7, {}, 2, sealing(7));
  open_session(world);
  world.ends[0].link->disconnect_all(world.now);
  world.run_for(5ms);
  ASSERT_NE(lost_notice(world, 1), nullptr);
  EXPECT_EQ(lost_notice(world, 1)->status, Status::refused);
  EXPECT_EQ(counted(world, 1).closes_received, 1U);
}

INSTANTIATE_TEST_SUITE_P(BothKinds, LinkSeal, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "StaticKeys" : "SharedSecret"; });

}  // namespace
}  // namespace fairlead::link
