// Many seeds: random weather, sizes, cancels and restarts in both directions. In all cases every message ends exactly
// once, each delivered one is whole and comes once, and nothing is left over.

#include "base/slowness_for_tests.hpp"
#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

constexpr std::uint64_t kSeeds = 240 / base::kSlowness;

LinkOptions options_of(std::uint64_t seed) {
  LinkOptions options;
  if (seed % 3 == 1) options.window_segments = 64;
  if (seed % 5 == 2) options.window_bytes = 65'536;
  if (seed % 7 == 3) options.reassembly_slots = 2;
  if (seed % 11 == 4) options.rooms_max = 40;
  return options;
}

std::size_t size_of(World& world) {
  switch (world.random() % 8) {
    case 0:
      return 0;
    case 1:
    case 2:
    case 3:
      return world.random() % 100;
    case 4:
      return world.random() % 800;
    case 5:
      return world.random() % 3000;
    case 6:
      return world.random() % 20'000;
    default:
      return world.random() % 200'000;
  }
}

Weather weather_of(World& world) {
  Weather weather;
  const auto up_to = [&](double most) { return std::uniform_real_distribution<>(0, most)(world.random); };
  weather.loss = world.random() % 4 == 0 ? 0 : up_to(0.2);
  weather.repeat = up_to(0.1);
  weather.damage = up_to(0.02);
  weather.delay = Duration(1000 + world.random() % 100'000);
  if (world.random() % 4 == 0) {
    weather.refuses = [&world](std::size_t, const Train&) { return world.random() % 5 == 0; };
  }
  if (world.random() % 2 == 0) weather.jitter = Duration(1 + world.random() % 100'000);
  return weather;
}

/// Takes back a message that has been under way for some time; what has left cannot be called back.
void cancel_any(World& world, std::uint64_t cookie) {
  for (std::size_t from = 0; from < world.ends.size(); ++from) {
    const auto found = world.ends[from].sent.find(cookie);
    if (found != world.ends[from].sent.end() && !found->second.is_ended) world.cancel(from, cookie);
  }
}

/// Exchanges some 60 messages between three ends, then waits for calm; returns the trace of the network.
std::uint64_t run(std::uint64_t seed) {
  World world(seed, options_of(seed), 3);
  if (seed % 2 == 0) world.path_datagram = static_cast<std::uint32_t>(1200 + world.random() % 10'000);
  std::uint64_t cookie = 1'000'000;
  for (int burst = 0; burst < 12; ++burst) {
    world.weather = weather_of(world);
    for (int i = 0; i < 5; ++i) {
      const std::size_t from = world.random() % 3, to = world.random() % 3;
      const Status status = world.try_send(from, to, size_of(world), cookie, 1 + world.random() % 9);
      EXPECT_TRUE(status == Status::ok || status == Status::again);
      if (world.random() % 10 == 0) world.cancel(from, cookie);
      if (world.random() % 5 == 0) cancel_any(world, 1'000'000 + world.random() % (cookie - 999'999));
      ++cookie;
    }
    world.run_for(Duration(world.random() % 300'000));
  }
  world.run_until_ended();
  world.weather = {};
  world.run_for(10s);  // the void segments of messages taken back have no outcome
  for (const World::End& end : world.ends) {
    for (const auto& [id, sent] : end.sent) {
      const auto& received = world.ends[sent.to].received;
      const auto found = received.find(id);
      if (sent.status == Status::ok) {
        EXPECT_TRUE(found != received.end() && found->second.is_complete) << "seed " << seed << " message " << id;
      } else {
        EXPECT_EQ(sent.status, Status::canceled) << "seed " << seed << " message " << id;
        EXPECT_TRUE(found == received.end() || found->second.is_complete) << "seed " << seed << " message " << id;
      }
    }
    EXPECT_EQ(end.link->counters().segments_in_flight, 0U) << "seed " << seed;
    EXPECT_EQ(end.link->counters().sessions_lost, 0U) << "seed " << seed;
  }
  for (const World::End& end : world.ends) EXPECT_EQ(end.link->next_deadline(), base::kNever) << "seed " << seed;
  world.expect_consistent();
  return world.trace;
}

/// As run(), but ends are restarted and disconnected in between.
void run_with_restarts(std::uint64_t seed) {
  World world(seed, options_of(seed), 3);
  std::uint64_t cookie = 1'000'000;
  for (int burst = 0; burst < 12; ++burst) {
    world.weather = weather_of(world);
    for (int i = 0; i < 5; ++i) {
      const std::size_t from = world.random() % 3, to = world.random() % 3;
      const Status status = world.try_send(from, to, size_of(world), cookie++, 1 + world.random() % 9);
      EXPECT_TRUE(status == Status::ok || status == Status::again);
    }
    world.run_for(Duration(world.random() % 2'000'000));
    const std::size_t i = world.random() % 3;
    if (world.random() % 2 == 0) {
      world.restart(i);
    } else if (world.random() % 2 == 0) {
      const std::size_t to = world.random() % 3;
      world.ends[i].link->disconnect(world.peer(i, to), world.now);
    }
  }
  world.weather = {};
  world.run_until_ended();
  for (const World::End& end : world.ends) {
    EXPECT_EQ(end.link->counters().segments_in_flight, 0U) << "seed " << seed;
    EXPECT_EQ(end.link->counters().messages_pending, 0U) << "seed " << seed;
  }
  world.expect_consistent();
}

class LinkSeeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(LinkSeeds, ExactlyOnceWhateverTheWeather) {
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 20; ++seed) {
    run(seed);
    if (HasFailure()) return;
  }
}

TEST_P(LinkSeeds, EveryMessageEndsOnceAcrossRestarts) {
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 20; ++seed) {
    run_with_restarts(seed);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Twenty, LinkSeeds, ::testing::Range(std::uint64_t{0}, kSeeds, std::uint64_t{20}));

TEST(LinkSeed, TheSameSeedGivesTheSameTrace) {
  for (std::uint64_t seed : {3UL, 4UL, 5UL}) EXPECT_EQ(run(seed), run(seed));
  EXPECT_NE(run(3), run(4));
}

}  // namespace
}  // namespace fairlead::link::testing
