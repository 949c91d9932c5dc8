#include "host/event_room.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace fairlead::host {
namespace {

TEST(EventRoom, PortsShareIt) {
  EventRoom room(10);
  std::optional<EventShare> one(room);
  EventShare other(room);
  EXPECT_TRUE(one->reserve(7));
  EXPECT_FALSE(other.reserve(4));
  EXPECT_TRUE(other.reserve(3));
  EXPECT_EQ(room.taken(), 10u);
  one.reset();
  EXPECT_EQ(room.taken(), 3u);
  EXPECT_TRUE(other.reserve(7));
  EXPECT_EQ(other.reserved(), 10u);
}

TEST(EventRoom, APortCountsWithTheMostThatItEverHad) {
  EventRoom room(10);
  EventShare share(room);
  EXPECT_TRUE(share.reserve(8));
  share.release(8);
  EXPECT_EQ(room.taken(), 8u);
  EXPECT_TRUE(share.reserve(8)) << "its queue has kept the room";
  EXPECT_EQ(room.taken(), 8u);
  EXPECT_FALSE(share.reserve(3));
  EXPECT_EQ(share.reserved(), 8u);
}

TEST(EventRoom, APortHasABoundOfItsOwn) {
  EventRoom room(kEventsOfAllMax);
  EventShare share(room);
  EXPECT_TRUE(share.reserve(kEventsMax));
  EXPECT_FALSE(share.reserve(1));
  share.release(1);
  EXPECT_TRUE(share.reserve(1));
}

TEST(EventRoomDeathTest, MoreThanWasTakenIsNotGivenBack) {
  EventRoom room(10);
  ASSERT_TRUE(room.take(3));
  EXPECT_DEATH(room.give_back(4), "4 events are given back, 3 were taken");
}

}  // namespace
}  // namespace fairlead::host
