// Which sealed hellos are refused, what each side reports, and what has to be sealed.

#include <gtest/gtest.h>

#include "link/sealed_world_for_tests.hpp"

namespace fairlead::link {
namespace {

using namespace testing;

struct Refusing {
  std::shared_ptr<const seal::Keyring> initiators, responders;
  seal::Refused told = seal::Refused::none;  // to the initiator
  Refusal counted = Refusal::not_sealed;     // by the responder
};

void expect_refused(std::uint64_t seed, const Refusing& refusing) {
  World world = world_of(seed, refusing.initiators, refusing.responders);
  const std::uint64_t cookie = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::refused);
  ASSERT_NE(lost_notice(world, 0), nullptr);
  EXPECT_EQ(lost_notice(world, 0)->diagnosis, Diagnosis::refused_there);
  EXPECT_EQ(lost_notice(world, 0)->refused, refusing.told);
  EXPECT_GT(refused(world, 1, refusing.counted), 0U);
  EXPECT_EQ(world.ends[1].link->turned_away().why, refusing.told);
  EXPECT_EQ(world.ends[1].link->turned_away().from, world.ends[0].address);
  EXPECT_EQ(counted(world, 1).sessions_opened, 0U);
  world.expect_consistent();
}

TEST(LinkSealRefusals, AnotherSecret) {
  expect_refused(1, {psk_ring({1}), psk_ring({2}), seal::Refused::wrong_secret, Refusal::wrong_secret});
}

TEST(LinkSealRefusals, AKeyThatIsNotKnown) {
  expect_refused(
      2, {static_ring({7}, {{1, 2}}), static_ring({2}, {{0, 1}}), seal::Refused::unknown_key, Refusal::unknown_key});
}

TEST(LinkSealRefusals, APinThatIsNotTheirs) {
  expect_refused(
      3, {static_ring({1}, {{1, 9}}), static_ring({2}, {{0, 1}}), seal::Refused::wrong_key, Refusal::wrong_key});
}

TEST(LinkSealRefusals, AnotherKind) {
  expect_refused(4, {psk_ring({1}), static_ring({2}, {{0, 1}}), seal::Refused::other_kind, Refusal::other_kind});
  expect_refused(5, {static_ring({1}, {{1, 2}}), psk_ring({1}), seal::Refused::other_kind, Refusal::other_kind});
}

TEST(LinkSealRefusals, WhoHasNoKeyOfThePeerSaysSoAtOnce) {
  World world = world_of(6, static_ring({1}, {}), static_ring({2}, {{0, 1}}));
  const std::uint64_t cookie = world.send(0, 1, 100);
  world.run_for(1ms);
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::refused);
  ASSERT_NE(lost_notice(world, 0), nullptr);
  EXPECT_EQ(lost_notice(world, 0)->diagnosis, Diagnosis::refused_here);
  EXPECT_EQ(lost_notice(world, 0)->refused, seal::Refused::unknown_key);
  EXPECT_EQ(counted(world, 0).hellos_sent, 0U);
}

TEST(LinkSealRefusals, AnUnsealedPeerIsRefusedWhereSealingIsRequired) {
  World world(7, {}, 2, [](std::size_t end) -> std::optional<SealSettings> {
    if (end == 0) return std::nullopt;
    return sealing_with(psk_ring({1}), 7);
  });
  const std::uint64_t to_sealing = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[to_sealing].status, Status::refused);
  EXPECT_EQ(lost_notice(world, 0)->diagnosis, Diagnosis::refused_there);
  EXPECT_EQ(lost_notice(world, 0)->refused, seal::Refused::not_sealed);
  EXPECT_GT(refused(world, 1, Refusal::not_sealed), 0U);

  const std::uint64_t to_unsealed = world.send(1, 0, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[1].sent[to_unsealed].status, Status::refused);
  EXPECT_EQ(lost_notice(world, 1)->diagnosis, Diagnosis::refused_there);
  EXPECT_EQ(lost_notice(world, 1)->refused, seal::Refused::cannot_seal);
  EXPECT_GT(refused(world, 0, Refusal::cannot_seal), 0U);
}

TEST(LinkSealPolicy, OutsideTheRangesNothingIsSealedAndAllIsTaken) {
  const std::vector<base::AddressRange> elsewhere{*base::AddressRange::parse("192.168.0.0/16")};
  World world(8, {}, 2, [&](std::size_t end) { return sealing_with(psk_ring({1}), end, elsewhere); });
  world.send(0, 1, 100);
  world.send(1, 0, 5'000);
  world.run_until_ended();
  world.expect_all_delivered();
  EXPECT_EQ(counted(world, 0).sessions_sealed, 0U);
}

TEST(LinkSealPolicy, WhoMustNotSealDoesIfThePeerMust) {
  const std::vector<base::AddressRange> all{base::AddressRange::all()};
  for (const std::size_t first : {0U, 1U}) {
    World world(9, {}, 2, [&](std::size_t end) {
      return sealing_with(psk_ring({1}), end, end == 0 ? std::vector<base::AddressRange>() : all);
    });
    world.send(first, 1 - first, 100);
    world.run_until_ended();
    world.expect_all_delivered();
    EXPECT_EQ(counted(world, 0).sessions_sealed, 1U) << first;
    EXPECT_EQ(counted(world, 1).sessions_sealed, 1U) << first;
  }
}

TEST(LinkSealPolicy, ASealedSessionIsNotReplacedByAnUnsealedOne) {
  const auto asked = [](std::size_t end) {
    return sealing_with(psk_ring({1}), end,
                        end == 0 ? std::vector{base::AddressRange::all()} : std::vector<base::AddressRange>());
  };
  World world(10, {}, 2, asked);
  open_session(world);
  ASSERT_TRUE(facts_of(world, 1).is_sealed);
  world.sealing = {};
  world.restart(0);  // a process without a key at the same address
  const std::uint64_t cookie = world.send(0, 1, 100);
  world.run_until_ended();
  EXPECT_EQ(world.ends[0].sent[cookie].status, Status::refused);
  EXPECT_TRUE(facts_of(world, 1).is_sealed);
  EXPECT_EQ(counted(world, 1).sessions_opened, 1U);
}

}  // namespace
}  // namespace fairlead::link
