// Allocations of the engine's thread fail while a link opens sessions, loses, reorders, cuts and joins segments: each
// alone, and several in a row. A segment without memory counts as lost and is sent again. No session ends, and no
// message is delivered twice.

#include <gtest/gtest.h>

#include "engine/active_port.hpp"
#include "link/sealing_for_tests.hpp"
#include "link/world_for_tests.hpp"
#include "tests/environment.hpp"
#include "tests/failing_memory.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using link::Refusal;

constexpr std::size_t kNodes = 3;

/// Three links exchange messages of all sizes over a path whose MTU shrinks while long segments are in flight.
class LinkWithoutMemory : public testing::Test {
 protected:
  static constexpr std::uint32_t kWide = 9000, kNarrow = 1300;

  ~LinkWithoutMemory() override { failing_memory = {}; }

  /// Runs with `count` failing allocations from number `first` on. Returns how many allocations were made.
  static std::uint64_t run(std::uint64_t first, std::uint64_t count, std::uint64_t messages = 21,
                           const link::testing::World::Sealing& sealing = {}) {
    link::LinkOptions options;
    options.peers_max = 8;
    link::testing::World world(5, options, sealing ? 2 : kNodes, sealing);  // two nodes: key exchanges are slow
    world.path_datagram = kWide;
    world.weather.loss = world.weather.repeat = 0.02;
    world.weather.jitter = 200us;
    begin(first, count);

    for (std::uint64_t cookie = 1; cookie <= messages; ++cookie) {
      if (cookie == 15) {
        world.weather.drops = [](std::size_t, std::span<const std::byte> bytes) { return bytes.size() > kNarrow; };
      }
      send(world, cookie);
      if (cookie % 7 == 0) world.run_for(500us);
    }
    world.run_until_ended();
    world.expect_all_delivered();
    for (const auto& end : world.ends) {
      const auto& refused = end.link->counters().refused;
      refused_ += refused[static_cast<std::size_t>(Refusal::no_memory)];
      parts_ += end.link->counters().parts_received;
    }
    for (const auto& end : world.ends) keys_changed_ += end.link->counters().keys_changed;
    return end(first, count);
  }

  static void begin(std::uint64_t first, std::uint64_t count) {
    failing_memory = {
        .is_watched = [] { return link::testing::LinkCall::depth != 0; }, .first = first, .last = first + count - 1};
  }
  static std::uint64_t end(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t asked = failing_memory.asked, failed = failing_memory.failed;
    failing_memory = {};
    EXPECT_EQ(failed, std::min(count, asked + 1 - std::min(asked + 1, first)));
    return asked;
  }

  /// One of three nodes falls silent while its message is half received and messages to it are in flight.
  static std::uint64_t lose_one(std::uint64_t first, std::uint64_t count) {
    link::LinkOptions options;
    options.peers_max = 8;
    options.give_up_after = options.connect_within = 300ms;
    link::testing::World world(6, options, kNodes);
    begin(first, count);
    for (std::uint64_t cookie = 1; cookie < 5; ++cookie) send(world, cookie);
    world.run_for(1ms);
    send(world, 20, 2, 0, 300'000);
    world.run_for(200us);
    world.ends[2].is_deaf = true;
    for (std::uint64_t cookie = 30; cookie < 40; ++cookie) send(world, cookie, 0, 2);
    world.run_for(5s);
    std::size_t lost = 0;
    for (const auto& notice : world.ends[0].notices) lost += notice.kind == link::Notice::Kind::lost ? 1 : 0;
    EXPECT_EQ(lost, 1U);
    for (const auto& [cookie, sent] : world.ends[0].sent) EXPECT_TRUE(sent.is_ended) << cookie;
    EXPECT_EQ(world.ends[0].link->counters().messages_pending, 0U);
    world.expect_consistent();
    return end(first, count);
  }

  static void send(link::testing::World& world, std::uint64_t cookie) {
    const std::size_t nodes = world.ends.size(), from = cookie % nodes;
    send(world, cookie, from, (from + 1 + (nodes > 2 ? cookie / 7 % 2 : 0)) % nodes);
  }
  static void send(link::testing::World& world, std::uint64_t cookie, std::size_t from, std::size_t to) {
    send(world, cookie, from, to, cookie % 5 == 0 ? 40'000 : cookie % 3 == 0 ? 8000 : 10 * cookie);
  }
  static void send(link::testing::World& world, std::uint64_t cookie, std::size_t from, std::size_t to,
                   std::size_t size) {
    for (int tries = 0; tries < 1000; ++tries) {
      const Status status = world.try_send(from, to, size, cookie);
      if (status == Status::ok) return;
      ASSERT_TRUE(status == Status::again || status == Status::no_memory) << static_cast<int>(status);
      world.run_for(1ms);
    }
    FAIL() << "message " << cookie << " is never taken";
  }

  /// Repeats the run so that each allocation fails once alone and once with the following ones. Not a full run: a third
  /// of them.
  template <typename Run>
  void each_fails(std::uint64_t all, std::uint64_t several, Run&& again) {
    for (const std::uint64_t count : {std::uint64_t{1}, several}) {
      for (std::uint64_t first = 1; first <= all; first += count) {
        if (!is_drawn(first, 3)) continue;
        SCOPED_TRACE(testing::Message() << count << " from allocation " << first << " of " << all);
        again(first, count);
        if (HasFailure()) return;
      }
    }
  }

  static inline std::uint64_t refused_ = 0, parts_ = 0, keys_changed_ = 0;
};

TEST_F(LinkWithoutMemory, GoesOnWhenThereIsSome) {
  const std::uint64_t all = run(1, 0);
  ASSERT_GT(all, 30U);
  ASSERT_GT(parts_, 0U);
  ASSERT_EQ(refused_, 0U);
  each_fails(all, 20, [](std::uint64_t first, std::uint64_t count) { run(first, count); });
  EXPECT_GT(refused_, 20U) << "datagrams for which there was no memory";
}

TEST_F(LinkWithoutMemory, SealedSessionsOpenAndChangeTheirKeysWhenThereIsSome) {
  static const bool is_watched = watch_libcrypto();
  ASSERT_TRUE(is_watched);
  refused_ = keys_changed_ = 0;
  const link::testing::World::Sealing psk = link::testing::all_with_psk(3);
  const auto sealing = [&](std::size_t end) {
    auto settings = psk(end);
    settings->bytes_max = 40'000;
    return settings;
  };
  constexpr std::uint64_t kMessages = 6;
  const std::uint64_t all = run(1, 0, kMessages, sealing);
  ASSERT_GT(all, 100U);
  ASSERT_GT(keys_changed_, 0U);
  // Few hellos are sent, so only a few allocations in a row fail.
  each_fails(all, 4, [&](std::uint64_t first, std::uint64_t count) { run(first, count, kMessages, sealing); });
  EXPECT_GT(refused_, 20U) << "greetings for which there was no memory";
}

TEST_F(LinkWithoutMemory, LosesAPeerAllTheSame) {
  const std::uint64_t all = lose_one(1, 0);
  ASSERT_GT(all, 10U);
  each_fails(all, 20, [](std::uint64_t first, std::uint64_t count) { lose_one(first, count); });
}

TEST(ActivePortWithoutMemory, TakesNothingAndGoesOn) {
  static bool is_out = false;
  engine::ActivePort port({.arrivals_max = 128, .memory_max = 1 << 20, .packed_max = 800}, 7);
  const auto take = [&](std::uint64_t buffered, bool without) {
    is_out = without;
    engine::Arrival* const arrival = port.acquire(buffered, false);
    is_out = false;
    if (arrival != nullptr) port.queue(*arrival, true);
    return arrival != nullptr;
  };
  failing_memory = {.is_watched = [] { return is_out; }, .first = 1, .last = ~0ULL};
  EXPECT_FALSE(take(0, true));
  EXPECT_TRUE(take(0, false));
  EXPECT_TRUE(take(0, true)) << "arrivals are made many at a time";
  EXPECT_FALSE(take(5000, true));
  EXPECT_TRUE(take(5000, false));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(take(0, false));  // these stay queued for now
  while (engine::Arrival* const arrival = port.next()) port.release(*arrival);
  EXPECT_TRUE(take(5000, true)) << "what comes back is taken again, without memory";
  EXPECT_GE(failing_memory.failed, 2U);
  failing_memory = {};
}

}  // namespace
}  // namespace fairlead::tests
