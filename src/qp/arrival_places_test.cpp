#include "qp/arrival_places.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fairlead::qp {
namespace {

using Kind = Arrival::Kind;

TEST(ArrivalPlaces, EachKindHasItsOwn) {
  constexpr Kind kKinds[] = {Kind::request, Kind::answer, Kind::datagram};
  for (const Kind greedy : kKinds) {
    ArrivalPlaces places;
    std::vector<std::uint32_t> slots;
    while (places.left(greedy) != 0) slots.push_back(places.acquire(greedy));
    EXPECT_EQ(slots.size(), ArrivalPlaces::kMost[static_cast<std::size_t>(greedy)]);
    EXPECT_EQ(places.acquire(greedy), ArrivalPlaces::kNone);
    for (const Kind other : kKinds) {
      if (other == greedy) continue;
      for (std::uint32_t i = 0; i < ArrivalPlaces::kMost[static_cast<std::size_t>(other)]; ++i)
        ASSERT_NE(places.acquire(other), ArrivalPlaces::kNone);
    }
    const std::uint32_t generation = places.generation(slots.back());
    EXPECT_NE(places.find(slots.back(), generation), nullptr);
    places.release(slots.back());
    EXPECT_EQ(places.find(slots.back(), generation), nullptr);
    EXPECT_NE(places.acquire(greedy), ArrivalPlaces::kNone);
  }
}

TEST(ArrivalPlaces, GivesBackWhatWasHeld) {
  ArrivalPlaces places;
  const std::uint32_t slot = places.acquire(Kind::datagram);
  places[slot].held.push_back({0, 8, std::make_unique<std::byte[]>(8)});
  places.release(slot);
  EXPECT_EQ(places.acquire(Kind::request), slot);
  EXPECT_TRUE(places[slot].held.empty());
  EXPECT_EQ(places[slot].kind, Kind::request);
}

}  // namespace
}  // namespace fairlead::qp
