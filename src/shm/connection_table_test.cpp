#include "shm/connection_table.hpp"

#include <gtest/gtest.h>

namespace fairlead::shm {
namespace {

/// Peers whose shared pages lie in the test.
class Departures : public testing::Test {
 protected:
  static constexpr std::uint64_t kKey = 0xABCD'EF01'2340'0007;

  std::uint32_t let_in(bool is_given_arena = true) {
    const std::uint32_t slot = table_.acquire();
    Connection& peer = table_[slot];
    peer.state = Connection::State::open;
    peer.sees_ours = is_given_arena;
    peer.other = &page_;
    return slot;
  }
  void be_at(Use use) { page_.at.store(std::uint64_t{3} << Use::kTurnShift | use.name()); }

  ConnectionTable table_{4};
  PairSide page_;
};

TEST_F(Departures, ASlotIsUsedAgainOnlyWhenItIsToldWhatItsPeerWasAt) {
  const std::uint32_t slot = let_in();
  be_at(Use::of_exposure(kKey));
  table_.release(slot);
  const std::uint32_t next = let_in();
  EXPECT_NE(next, slot) << "its number names the one that is gone";
  table_.release(next);
  for (const std::uint32_t one : {slot, next}) {
    const auto gone = table_.take_departed();
    ASSERT_TRUE(gone);
    EXPECT_EQ(gone->slot, one);
    EXPECT_TRUE(Withdrawn::exposure(kKey).is_used(gone->at));
  }
  EXPECT_FALSE(table_.take_departed());
  EXPECT_EQ(let_in(), slot);
}

TEST_F(Departures, ASlotThatIsClosedTwiceIsToldOnce) {
  const std::uint32_t slot = let_in();
  be_at(Use::of_exposure(kKey));
  table_.release(slot);
  table_.release(slot);
  EXPECT_TRUE(table_.take_departed());
  EXPECT_FALSE(table_.take_departed());
}

TEST_F(Departures, OfOneThatWasAtNoExposureNothingIsTold) {
  table_.release(let_in());
  be_at(Use::of_region(7, 3));
  table_.release(let_in());
  be_at(Use::of_exposure(kKey));
  table_.release(let_in(false));  // the claim of a stranger is ignored
  EXPECT_FALSE(table_.take_departed());
  EXPECT_EQ(table_.size(), 1u);
}

}  // namespace
}  // namespace fairlead::shm
