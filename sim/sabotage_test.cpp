// The simulator detects each planted fault: the run ends with the finding that names it.

#include "sim/sabotage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scenario_file.hpp"
#include "sim/world.hpp"

namespace fairlead::sim {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

std::string finding_with(Sabotage::Kind kind, bool is_one_machine = false, Seals seals = Seals::none) {
  auto scenario = parse_scenario(R"({
    "time": "200ms", "rare_branches": false,
    "host": { "merges_arrivals": false },
    "flows": [ { "kind": "message", "from": 0, "to": 1, "size": 200, "in_flight": 2, "gap": "100us" } ]
  })",
                                 "sabotaged");
  EXPECT_TRUE(scenario.has_value()) << scenario.error().message;
  scenario->is_one_machine = is_one_machine;
  scenario->sabotage = kind;
  scenario->seals = seals;
  return World(*scenario, 1).run().finding.value_or("nothing");
}

TEST(SabotageTest, NothingIsFoundWhereNothingIsWrong) {
  EXPECT_EQ(finding_with(Sabotage::Kind::none), "nothing");
}

TEST(SabotageTest, AWrongByteThatTheChecksumHides) {
  EXPECT_THAT(finding_with(Sabotage::Kind::wrong_byte), HasSubstr("arrived wrong"));
}

TEST(SabotageTest, AMessageThatArrivesTwice) {
  EXPECT_THAT(finding_with(Sabotage::Kind::repeated_message), HasSubstr("arrived twice"));
}

TEST(SabotageTest, AHeaderThatIsChangedOnTheWay) {
  EXPECT_THAT(finding_with(Sabotage::Kind::changed_header), HasSubstr("arrived twice"));
}

TEST(SabotageTest, AChangedHeaderIsNoHarmWhereSessionsAreSealed) {
  EXPECT_EQ(finding_with(Sabotage::Kind::changed_header, false, Seals::shared_secret), "nothing");
  EXPECT_EQ(finding_with(Sabotage::Kind::changed_header, false, Seals::static_keys), "nothing");
}

TEST(SabotageTest, ASealThatForgetsTheHeader) {
  EXPECT_THAT(finding_with(Sabotage::Kind::forgotten_header, false, Seals::shared_secret), HasSubstr("arrived twice"));
}

TEST(SabotageTest, AnEventThatIsLost) {
  EXPECT_THAT(finding_with(Sabotage::Kind::lost_event), HasSubstr("there is no event"));
}

TEST(SabotageTest, AnEventThatComesTwice) {
  EXPECT_THAT(finding_with(Sabotage::Kind::repeated_event), HasSubstr("another event"));
}

TEST(SabotageTest, NothingIsFoundWhereNothingIsWrongOnOneMachine) {
  EXPECT_EQ(finding_with(Sabotage::Kind::none, true), "nothing");
}

TEST(SabotageTest, ARecordThatIsLost) {
  EXPECT_THAT(finding_with(Sabotage::Kind::lost_record, true), HasSubstr("never arrived"));
}

TEST(SabotageTest, ARecordThatIsReadTwice) {
  EXPECT_THAT(finding_with(Sabotage::Kind::repeated_record, true), HasSubstr("arrived twice"));
}

/// Returns the first finding over some seeds, in a world with two honest processes and one that lies to both.
std::string finding_beside_a_liar(Sabotage::Kind kind) {
  auto scenario = read_scenario(FAIRLEAD_SOURCE_FOLDER "/sim/scenarios/lying_process.json");
  EXPECT_TRUE(scenario.has_value()) << scenario.error().message;
  scenario->sabotage = kind;
  const std::uint64_t seeds = kind == Sabotage::Kind::none ? 3 : 30;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    if (const auto finding = World(*scenario, seed).run().finding) return *finding;
  return "nothing";
}

TEST(SabotageTest, NothingIsFoundBesideALiar) {
  EXPECT_EQ(finding_beside_a_liar(Sabotage::Kind::none), "nothing");
}

TEST(SabotageTest, ALiarWhomNobodyExpels) {
  EXPECT_THAT(finding_beside_a_liar(Sabotage::Kind::forgiven_liar), HasSubstr("has not expelled host 2"));
}

TEST(SabotageTest, ALieThatChangesAnHonestMessage) {
  EXPECT_THAT(finding_beside_a_liar(Sabotage::Kind::overrun_record),
              AnyOf(HasSubstr("wrong"), HasSubstr("arrived"), HasSubstr("names no message")));
}

TEST(SabotageTest, AnEventThatIsLostBesideALiar) {
  EXPECT_THAT(finding_beside_a_liar(Sabotage::Kind::lost_event), HasSubstr("there is no event"));
}

TEST(SabotageTest, AnEventThatIsLostOnOneMachine) {
  EXPECT_THAT(finding_with(Sabotage::Kind::lost_event, true), HasSubstr("there is no event"));
}

TEST(SabotageTest, AWriteAfterTheEnd) {
  EXPECT_THAT(finding_with(Sabotage::Kind::late_write), HasSubstr("written after its operation had ended"));
}

}  // namespace
}  // namespace fairlead::sim
