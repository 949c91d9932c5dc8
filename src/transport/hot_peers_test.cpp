#include "transport/hot_peers.hpp"

#include <gtest/gtest.h>

#include <set>

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
  HotPeers hot(2);
  HotPeers::Change change;
  count_until_change(hot, 1, 100, change);
  count_until_change(hot, 2, 100, change);
  count_until_change(hot, 2, 20'000, change);  // meanwhile the first one is forgotten
  EXPECT_LT(count_until_change(hot, 3, 100, change), 100);
  EXPECT_EQ(change.cooled, peer(1));
  EXPECT_EQ(change.heated, peer(3));
}

TEST(HotPeers, IfMoreAreBusyThanThereArePlacesNobodyIsHot) {
  HotPeers hot(2);
  std::set<std::uint16_t> places;
  int changes = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto number = static_cast<std::uint16_t>(1 + i % 3);
    const auto change = hot.count(number, peer(number));
    if (change.heated) places.insert(change.heated->port), ++changes;
    if (change.cooled) places.erase(change.cooled->port), ++changes;
  }
  EXPECT_TRUE(places.empty());
  EXPECT_EQ(changes, 4);
}

TEST(HotPeers, OneIsHotAgainSoonAfterTheOthersAreQuiet) {
  HotPeers hot(1);
  HotPeers::Change change;
  count_until_change(hot, 1, 100, change);
  count_until_change(hot, 2, 100, change);
  EXPECT_EQ(change.cooled, peer(1));
  EXPECT_FALSE(change.heated);
  const int until_hot = count_until_change(hot, 2, 20'000, change);
  EXPECT_GT(until_hot, 4000) << "not before counts are halved";
  EXPECT_LT(until_hot, 4096);
  EXPECT_EQ(change.heated, peer(2));
}

TEST(HotPeers, AQuarterIsFarLess) {
  HotPeers hot(1);
  HotPeers::Change change;
  EXPECT_EQ(count_until_change(hot, 1, 100, change), 16);
  count_until_change(hot, 1, 48, change);
  EXPECT_EQ(count_until_change(hot, 2, 31, change), 31) << "16 beside 64";
  EXPECT_FALSE(change.cooled);
  EXPECT_EQ(count_until_change(hot, 2, 100, change), 1 + 16) << "32 beside 64: a crowd, seen at the next decision";
  EXPECT_EQ(change.cooled, peer(1));
}

TEST(HotPeers, FourTimesAreFarMore) {
  HotPeers hot(2);
  HotPeers::Change change;
  count_until_change(hot, 1, 16, change);
  for (int i = 0; i < 2 * 4096 - 16; ++i) hot.count(2, peer(2));  // which leave 4 of the first one's arrivals
  EXPECT_EQ(count_until_change(hot, 3, 100, change), 16);
  EXPECT_EQ(change.cooled, peer(1));
  EXPECT_EQ(change.heated, peer(3));
}

TEST(HotPeers, ACrowdLastsUntilOneIsFarBusierThanTheOthers) {
  HotPeers hot(1);
  HotPeers::Change change;
  int arrivals = 0;
  const auto count = [&](std::uint16_t number, int times) {
    for (int i = 0; i < times; ++i, ++arrivals) change = hot.count(number, peer(number));
  };
  count(1, 32), count(2, 32);
  count(2, 819 - 32), count(3, 1), count(1, 4095 - arrivals);
  EXPECT_FALSE(change.heated);
  count(1, 1);  // the period ends with 3276 and 819 arrivals
  EXPECT_EQ(arrivals, 4096);
  EXPECT_LE(count_until_change(hot, 1, 100, change), 16);
  EXPECT_EQ(change.heated, peer(1));
}

TEST(HotPeers, SomeoneFarLessBusyCostsNobodyItsPlace) {
  HotPeers hot(1);
  int changes = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto number = static_cast<std::uint16_t>(i % 10 == 9 ? 2 : 1);
    const auto change = hot.count(number, peer(number));
    changes += change.heated || change.cooled ? 1 : 0;
  }
  EXPECT_EQ(changes, 1);
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

TEST(HotPeers, WhoeverFollowsAForgottenPeerStartsAnew) {
  HotPeers hot(1);
  for (int i = 0; i < 100; ++i) hot.count(1, peer(1));
  hot.forget(1);
  HotPeers::Change change;
  EXPECT_EQ(count_until_change(hot, 1, 100, change), 16);
}

TEST(HotPeers, WithoutPlacesNobodyIsHot) {
  HotPeers hot(0);
  HotPeers::Change change;
  EXPECT_EQ(count_until_change(hot, 1, 1000, change), 1000);
}

}  // namespace
}  // namespace fairlead::transport
