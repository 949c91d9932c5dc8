#include "transport/offences.hpp"

#include <gtest/gtest.h>

namespace fairlead::transport {
namespace {

constexpr link::PeerHandle kPeer{.slot = 3, .generation = 1};

TEST(Offences, APeerThatGoesOnGuessingIsCondemnedOnce) {
  Offences offences;
  const auto most = static_cast<std::uint64_t>(GuessBudget::kMost) / 64;
  for (std::uint64_t i = 0; i < most; ++i) offences.note_wrong_secret(kPeer, Secret::region, base::Instant{});
  EXPECT_FALSE(offences.is_anyone_condemned());
  offences.note_wrong_secret(kPeer, Secret::region, base::Instant{});
  offences.note_wrong_secret(kPeer, Secret::region, base::Instant{});
  const auto condemned = offences.take_condemned();
  ASSERT_EQ(condemned.size(), 1u);
  EXPECT_EQ(condemned[0].peer, kPeer);
  EXPECT_EQ(condemned[0].offence, Offence::guesses);
  EXPECT_FALSE(offences.is_anyone_condemned());
  EXPECT_EQ(offences.wrong_secrets(Secret::region), most + 2);
  EXPECT_EQ(offences.wrong_secrets(Secret::tag), 0u);
  EXPECT_EQ(offences.expelled_for(Offence::guesses), 1u);
}

TEST(Offences, TheNextPeerInASlotHasABudgetOfItsOwn) {
  Offences offences;
  constexpr link::PeerHandle next{.slot = kPeer.slot, .generation = kPeer.generation + 1};
  for (std::int64_t i = 0; i < GuessBudget::kMost; ++i) offences.note_wrong_secret(kPeer, Secret::tag, base::Instant{});
  offences.note_wrong_secret(next, Secret::tag, base::Instant{});
  EXPECT_FALSE(offences.is_anyone_condemned());
}

TEST(Offences, TheFirstOffenceIsTheReason) {
  Offences offences;
  offences.condemn(kPeer, Offence::holds_memory);
  offences.condemn(kPeer, Offence::takes_no_answers);
  EXPECT_EQ(offences.take_condemned().at(0).offence, Offence::holds_memory);
  EXPECT_EQ(offences.expelled_for(Offence::holds_memory), 1u);
  EXPECT_EQ(offences.expelled_for(Offence::takes_no_answers), 0u);
}

}  // namespace
}  // namespace fairlead::transport
