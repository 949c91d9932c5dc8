#include "transport/hot_peers.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

base::SocketAddress peer(std::uint16_t number) {
  return {.ip = {1}, .scope = 0, .port = number};
}

// Counts arrivals of one peer until a change, at most `times`; returns their number.
int count_until_change(HotPeers& hot, std::uint16_t number, int times, HotPeers::Change& change) {
  for (int i = 1; i <= times; ++i) {
    change = hot.count(number, peer(number));
    if (change.heated || change.cooled) return i;
  }
  return times;
}

TEST(HotPeers, ABusyPeerGetsAFreePlaceOnce) {
  HotPeers hot(2);
  HotPeers::Change change;
  EXPECT_LT(count_until_change(hot, 1, 100, change), 100);
  EXPECT_EQ(change.heated, peer(1));
  EXPECT_FALSE(change.cooled);
  count_until_change(hot, 1, 1000, change);
  EXPECT_FALSE(change.heated) << "it has its place already";
}

TEST(HotPeers, ASeldomPeerGetsNone) {
  HotPeers hot(2);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(hot.count(1, peer(1)).heated);
}

TEST(HotPeers, AClearlyBusierPeerTakesThePlaceOfTheLeastBusy) {
  HotPeers hot(1);
  HotPeers::Change change;
  count_until_change(hot, 1, 100, change);
  EXPECT_FALSE(hot.count(2, peer(2)).heated);
  for (int i = 0; i < 4000 && !change.cooled; ++i) change = hot.count(2, peer(2));
  EXPECT_EQ(change.cooled, peer(1));
  EXPECT_EQ(change.heated, peer(2));
}

TEST(HotPeers, TwoEquallyBusyPeersDoNotTakeTurns) {
  HotPeers hot(1);
  int changes = 0;
  for (int i = 0; i < 100000; ++i) {
    const auto number = static_cast<std::uint16_t>(1 + i % 2);
    if (hot.count(number, peer(number)).heated) ++changes;
  }
  EXPECT_EQ(changes, 1);
}

TEST(HotPeers, AForgottenPeerLeavesItsPlace) {
  HotPeers hot(1);
  HotPeers::Change change;
  count_until_change(hot, 1, 100, change);
  EXPECT_TRUE(hot.forget(1));
  EXPECT_FALSE(hot.forget(1));
  count_until_change(hot, 2, 100, change);
  EXPECT_EQ(change.heated, peer(2));
}

TEST(HotPeers, WithoutPlacesNobodyIsHot) {
  HotPeers hot(0);
  HotPeers::Change change;
  EXPECT_EQ(count_until_change(hot, 1, 1000, change), 1000);
}

}  // namespace
}  // namespace fairlead::transport
