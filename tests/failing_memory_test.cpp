// Memory that is not to be had while the engine's thread is at work: each allocation of a link that opens sessions,
// loses, reorders, cuts and joins, one after the other, and from there on a few more. What needed it is as if it had
// been lost on the way, and goes on when there is memory again; nothing ends, nothing is delivered twice.

#include <gtest/gtest.h>

#include "engine/active_port.hpp"
#include "link/world_for_tests.hpp"
#include "tests/failing_memory.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using link::Refusal;

constexpr std::size_t kNodes = 3;

/// Messages of all sizes between three links, over a line that becomes narrower while long segments are under way.
class LinkWithoutMemory : public testing::Test {
 protected:
  static constexpr std::uint32_t kWide = 9000, kNarrow = 1300;

  ~LinkWithoutMemory() override { failing_memory = {}; }

  /// With the allocations from `first` on that fail; how many were asked for.
  static std::uint64_t run(std::uint64_t first, std::uint64_t count) {
    link::LinkOptions options;
    options.peers_max = 8;
    link::testing::World world(5, options, kNodes);
    world.path_datagram = kWide;
    world.weather.loss = world.weather.repeat = 0.02;
    world.weather.jitter = 200us;
    failing_memory = {
        .is_watched = [] { return link::testing::LinkCall::depth != 0; }, .first = first, .last = first + count - 1};

    for (std::uint64_t cookie = 1; cookie < 22; ++cookie) {
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
    const std::uint64_t asked = failing_memory.asked, failed = failing_memory.failed;
    failing_memory = {};
    EXPECT_EQ(failed, std::min(count, asked + 1 - std::min(asked + 1, first)));
    return asked;
  }

  static void send(link::testing::World& world, std::uint64_t cookie) {
    const std::size_t from = cookie % kNodes, to = (cookie + 1 + cookie / 7 % 2) % kNodes;
    const std::size_t size = cookie % 5 == 0 ? 40'000 : cookie % 3 == 0 ? 8000 : 10 * cookie;
    for (int tries = 0; tries < 1000; ++tries) {
      const Status status = world.try_send(from, to, size, cookie);
      if (status == Status::ok) return;
      ASSERT_TRUE(status == Status::again || status == Status::no_memory) << static_cast<int>(status);
      world.run_for(1ms);
    }
    FAIL() << "message " << cookie << " is never taken";
  }

  static inline std::uint64_t refused_ = 0, parts_ = 0;
};

TEST_F(LinkWithoutMemory, GoesOnWhenThereIsSome) {
  const std::uint64_t all = run(1, 0);
  ASSERT_GT(all, 30U);
  ASSERT_GT(parts_, 0U);
  ASSERT_EQ(refused_, 0U);
  for (const std::uint64_t count : {1U, 20U}) {
    for (std::uint64_t first = 1; first <= all; ++first) {
      SCOPED_TRACE(first);
      run(first, count);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(refused_, 20U) << "datagrams for which there was no memory";
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
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(take(0, false));  // the last ones do not come back yet
  while (engine::Arrival* const arrival = port.next()) port.release(*arrival);
  EXPECT_TRUE(take(5000, true)) << "what comes back is taken again, without memory";
  EXPECT_GE(failing_memory.failed, 2U);
  failing_memory = {};
}

}  // namespace
}  // namespace fairlead::tests
