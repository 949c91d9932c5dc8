#include "qp/flights.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fairlead::qp {
namespace {

class FlightsOfOneRegion : public testing::Test {
 protected:
  std::array<std::byte, 8> memory_{};
  RegionTable regions_{16};
  std::uint32_t key_ = regions_.add({.base = memory_.data(), .length = 8});
  Flights flights_{regions_};
};

TEST_F(FlightsOfOneRegion, HoldTheirRegionUntilTheirOutcome) {
  std::uint32_t slot = 0;
  GatherList list;
  list.add(regions_.locate(key_, 0, 0, 8, 0));
  ASSERT_NE(flights_.prepare(list, slot), nullptr);
  EXPECT_FALSE(regions_.is_held(key_)) << "not submitted yet";
  const std::uint64_t cookie = flights_.cookie(slot);
  flights_.commit(slot, {.pair = 3, .number = {7}, .is_request = true}, {.slot = 5, .generation = 1}, 16);
  EXPECT_TRUE(regions_.is_held(key_));
  int of_pair = 0, of_region = 0;
  flights_.for_each_of_pair(3, [&](link::PeerHandle peer) { of_pair += peer.slot == 5; });
  flights_.for_each_of_pair(4, [&](link::PeerHandle) { ++of_pair; });
  const auto is_its = [&](std::uint32_t hold) { return regions_.is_hold_of(hold, key_, false); };
  flights_.for_each_of_region(is_its, [&](link::PeerHandle peer) { of_region += peer.slot == 5; });
  EXPECT_EQ(of_pair, 1);
  EXPECT_EQ(of_region, 1);
  const FlightOwner owner = flights_.end(cookie);
  EXPECT_EQ(owner.pair, 3u);
  EXPECT_EQ(owner.number, RequestNumber{7});
  EXPECT_TRUE(owner.is_request);
  EXPECT_FALSE(regions_.is_held(key_));
  EXPECT_DEATH(flights_.end(cookie), "came twice");
}

TEST(Flights, WhatWasCopiedIsItsCookieAlone) {
  const std::uint64_t cookie = copied_cookie({.pair = 4095, .number = {0xFFFF'FFFF}});
  EXPECT_EQ(transport::Cookie::of(cookie).client, transport::Client::queue_pairs);
  ASSERT_TRUE(is_copied(cookie));
  const FlightOwner owner = owner_of_copied(cookie);
  EXPECT_EQ(owner.pair, 4095u);
  EXPECT_EQ(owner.number, RequestNumber{0xFFFF'FFFF});
  EXPECT_TRUE(owner.is_request);
}

}  // namespace
}  // namespace fairlead::qp
