#include "transport/route_cache.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace fairlead::transport {
namespace {

base::SocketAddress address(std::uint32_t host, std::uint16_t port = 20480) {
  return *base::SocketAddress::from_ip(fmt::format("10.0.{}.{}", host / 256, host % 256), port);
}

TEST(RouteCache, KnowsWhatItKeptAndNothingElse) {
  RouteCache routes;
  EXPECT_EQ(routes.find(address(1)), nullptr);
  EXPECT_EQ(routes.find({}), nullptr);
  routes.keep(address(1), {.slot = 7, .generation = 2});
  ASSERT_NE(routes.find(address(1)), nullptr);
  EXPECT_EQ(*routes.find(address(1)), (link::PeerHandle{.slot = 7, .generation = 2}));
  EXPECT_EQ(routes.find(address(1, 20481)), nullptr);
  routes.forget(address(2));
  routes.forget(link::PeerHandle{.slot = 7, .generation = 1});
  EXPECT_NE(routes.find(address(1)), nullptr);
  routes.forget(address(1));
  EXPECT_EQ(routes.find(address(1)), nullptr);
  routes.keep(address(1), {.slot = 7, .generation = 2});
  routes.forget(link::PeerHandle{.slot = 7, .generation = 2});
  EXPECT_EQ(routes.find(address(1)), nullptr);
}

TEST(RouteCache, SixtyFourEnginesOfOneHostHaveAPlaceEach) {
  RouteCache routes;
  for (std::uint32_t i = 0; i < 64; ++i) routes.keep(address(1, static_cast<std::uint16_t>(20480 + i)), {.slot = i});
  std::uint32_t known = 0;
  for (std::uint32_t i = 0; i < 64; ++i) {
    const link::PeerHandle* const peer = routes.find(address(1, static_cast<std::uint16_t>(20480 + i)));
    known += peer != nullptr && peer->slot == i;
  }
  EXPECT_EQ(known, 64u);
}

TEST(RouteCache, ManyAddressesShareItsPlacesAndNoneIsMistaken) {
  RouteCache routes;
  for (std::uint32_t i = 0; i < 10'000; ++i) routes.keep(address(i), {.slot = i});
  std::uint32_t known = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const link::PeerHandle* const peer = routes.find(address(i));
    if (peer == nullptr) continue;
    EXPECT_EQ(peer->slot, i);
    ++known;
  }
  EXPECT_GT(known, 256u);
  EXPECT_LE(known, 512u);
}

}  // namespace
}  // namespace fairlead::transport
