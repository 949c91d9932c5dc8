#include "transport/offences.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

constexpr link::PeerHandle kPeer{.slot = 3, .generation = 1};

TEST(Offences, APeerThatGoesOnGuessingIsCondemnedOnce) {
  Offences offences(16);
  const auto most = static_cast<std::uint64_t>(GuessBudget::kMost) / 64;
  for (std::uint64_t i = 0; i < most; ++i) offences.note_wrong_secret(kPeer, Secret::region, base::Instant{});
  EXPECT_FALSE(offences.is_anyone_condemned());
  offences.note_wrong_secret(kPeer, Secret::region, base::Instant{});
  offences.note_wrong_secret(kPeer, Secret::region, base::Instant{});
  const auto condemned = offences.take_condemned();
  ASSERT_TRUE(condemned);
  EXPECT_EQ(condemned->peer, kPeer);
  EXPECT_EQ(condemned->offence, Offence::guesses);
  EXPECT_FALSE(offences.is_anyone_condemned());
  EXPECT_EQ(offences.wrong_secrets(Secret::region), most + 2);
  EXPECT_EQ(offences.wrong_secrets(Secret::tag), 0u);
  EXPECT_EQ(offences.expelled_for(Offence::guesses), 1u);
}

TEST(Offences, TheNextPeerInASlotHasABudgetOfItsOwn) {
  Offences offences(16);
  constexpr link::PeerHandle next{.slot = kPeer.slot, .generation = kPeer.generation + 1};
  for (std::int64_t i = 0; i < GuessBudget::kMost; ++i) offences.note_wrong_secret(kPeer, Secret::tag, base::Instant{});
  offences.note_wrong_secret(next, Secret::tag, base::Instant{});
  EXPECT_FALSE(offences.is_anyone_condemned());
}

TEST(Offences, TheFirstOffenceIsTheReason) {
  Offences offences(16);
  offences.condemn(kPeer, Offence::holds_memory);
  offences.condemn(kPeer, Offence::takes_no_answers);
  EXPECT_EQ(offences.take_condemned()->offence, Offence::holds_memory);
  EXPECT_EQ(offences.expelled_for(Offence::holds_memory), 1u);
  EXPECT_EQ(offences.expelled_for(Offence::takes_no_answers), 0u);
}

}  // namespace
}  // namespace fairlead::transport
