// Ordered messages of any size leave in their order, and arrive in it unless datagrams are lost.

#include <algorithm>
#include <random>

#include "link/world_for_tests.hpp"

namespace fairlead::link::testing {
namespace {

struct Case {
  const char* name;
  std::uint32_t path_datagram;
  std::uint64_t window_bytes;
};

class LinkOrdered : public ::testing::TestWithParam<Case> {
 protected:
  static LinkOptions options() {
    LinkOptions options;
    options.window_bytes = GetParam().window_bytes;
    return options;
  }
};

/// Of all sizes that differ in how they are sent: tiny, short, long in one piece, long in several.
std::size_t some_size(std::mt19937_64& random) {
  constexpr std::array<std::size_t, 6> kSizes{0, 8, 200, 1000, 1300, 4096};
  return kSizes[random() % kSizes.size()];
}

TEST_P(LinkOrdered, ArriveAsTheyWereSent) {
  World world(1, options());
  world.path_datagram = GetParam().path_datagram;
  world.sends_ordered = true;
  open_session(world);
  world.ends[1].completed.clear();
  std::mt19937_64 random(5);
  for (int burst = 0; burst < 40; ++burst) {
    for (std::uint64_t i = random() % 16; i != 0; --i) world.send(0, 1, some_size(random));
    world.step();
  }
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_GT(world.ends[1].completed.size(), 200U);
  EXPECT_TRUE(std::ranges::is_sorted(world.ends[1].completed));
}

// Other messages take the fastest way, and overtake.
TEST_P(LinkOrdered, HoldUpNoOthers) {
  World world(1, options());
  world.path_datagram = GetParam().path_datagram;
  open_session(world);
  world.sends_ordered = true;
  for (int i = 0; i < 50; ++i) world.send(0, 1, 4096);
  world.sends_ordered = false;
  const std::uint64_t tiny = world.send(0, 1, 8);
  world.ends[1].completed.clear();
  world.run_until_ended();
  const auto& completed = world.ends[1].completed;
  EXPECT_LT(std::ranges::find(completed, tiny) - completed.begin(), 10);
}

// One that is taken back leaves the others as they are.
TEST_P(LinkOrdered, GoOnWithoutOneThatIsTakenBack) {
  World world(1, options());
  world.path_datagram = GetParam().path_datagram;
  open_session(world);
  world.sends_ordered = true;
  world.ends[1].completed.clear();
  std::vector<std::uint64_t> taken_back, kept;
  for (int i = 0; i < 12; ++i) {
    (i % 3 == 1 ? taken_back : kept).push_back(world.send(0, 1, i % 3 == 2 ? 8 : 4096));
  }
  for (const std::uint64_t cookie : taken_back) EXPECT_TRUE(world.cancel(0, cookie));
  world.run_until_ended();
  for (const std::uint64_t cookie : kept) EXPECT_EQ(world.ends[0].sent.at(cookie).status, Status::ok);
  const std::uint64_t last = world.send(0, 1, 8);
  world.run_until_ended();
  EXPECT_EQ(world.ends[1].completed.back(), last);
}

INSTANTIATE_TEST_SUITE_P(Over, LinkOrdered,
                         ::testing::Values(Case{"ethernet", 1472, 4 << 20}, Case{"loopback", 65'000, 4 << 20},
                                           Case{"narrow_window", 1472, 65'536}),
                         [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace fairlead::link::testing
