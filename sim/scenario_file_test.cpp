#include "sim/scenario_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead::sim {
namespace {

using testing::HasSubstr;

std::string mistake_in(std::string_view text) {
  const auto scenario = parse_scenario(text, "test");
  return scenario ? "none" : scenario.error().message;
}

TEST(ScenarioFileTest, ReadsEachPart) {
  const auto scenario = parse_scenario(R"({
    "title": "all of it", "time": "2s", "hosts": 3, "ports": 2,
    "options": { "ack_delay": 50 },
    "link": { "delay": "10us", "loss": "1%", "rate": "10Gb/s", "queue": "64KiB" },
    "links": [ { "from": 0, "to": 1, "loss": "50%" } ],
    "host": { "receives_posted": 4 },
    "host_differs": [ { "host": 2, "look_every": "1ms" } ],
    "faults": [ { "at": "1s", "kind": "partition", "from": "each", "to": 2, "lasting": "100ms" },
                { "at": "1s", "kind": "restart", "host": 1, "lasting": "5ms" } ],
    "flows": [ { "from": "each", "to": 0, "size": "0..64KiB", "kind": "put" } ],
    "expect": { "ends": ["ok", "peer silent"] }
  })",
                                       "test");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->time, 2s);
  EXPECT_EQ(scenario->link.bytes_per_second, 1'250'000'000u);
  EXPECT_EQ(scenario->links[0].link.loss, 0.5);
  EXPECT_EQ(scenario->links[0].link.delay, 10us);
  EXPECT_EQ(scenario->hosts[2].look_every, 1ms);
  EXPECT_EQ(scenario->hosts[2].receives_posted, 4u);
  EXPECT_EQ(scenario->faults[0].link.loss, 1);
  EXPECT_EQ(scenario->faults[1].kind, FaultPlan::Kind::restart);
  ASSERT_EQ(scenario->flows.size(), 2u);
  EXPECT_EQ(scenario->flows[1].from, 2u);
  EXPECT_EQ(scenario->flows[1].size_max, 65536u);
  EXPECT_EQ(scenario->expect.ends.size(), 2u);
}

TEST(ScenarioFileTest, MistakesNameTheirPlaceAndARemedy) {
  EXPECT_THAT(mistake_in("{"), HasSubstr("no valid JSON"));
  EXPECT_THAT(mistake_in("{}"), HasSubstr("flows: want at least one"));
  EXPECT_THAT(mistake_in(R"({"tme": "1s"})"), HasSubstr("tme: no such key: want one of"));
  EXPECT_THAT(mistake_in(R"({"time": "1 parsec"})"), HasSubstr("time: '1 parsec': want a number like"));
  EXPECT_THAT(mistake_in(R"({"hosts": 0})"), HasSubstr("hosts: 0: want a whole number from 1"));
  EXPECT_THAT(mistake_in(R"({"link": {"loss": "150%"}})"), HasSubstr("link.loss: '150%' is more than all"));
  EXPECT_THAT(mistake_in(R"({"faults": [{"kind": "flood"}]})"), HasSubstr("faults[0].kind: 'flood': want one of link"));
  EXPECT_THAT(mistake_in(R"({"faults": [{"kind": "pause", "host": 7}]})"), HasSubstr("faults[0].host: '7' is no host"));
  EXPECT_THAT(mistake_in(R"({"faults": [{"kind": "pause", "host": 1}]})"), HasSubstr("faults[0].lasting: want"));
  EXPECT_THAT(mistake_in(R"({"flows": [{"size": "9..1"}]})"), HasSubstr("flows[0].size: '9..1'"));
  EXPECT_THAT(mistake_in(R"({"options": {"ack_dely": 5}})"), HasSubstr("options.ack_dely"));
  EXPECT_THAT(mistake_in(R"({"expect": {"ends": ["fine"]}})"), HasSubstr("expect.ends: 'fine' is no status"));
  EXPECT_THAT(mistake_in(R"({"host": {"pass_time": "0"}})"), HasSubstr("virtual time stands still"));
}

TEST(ScenarioFileTest, AMissingFileIsAnError) {
  EXPECT_THAT(read_scenario("/nowhere.json").error().message, HasSubstr("cannot read /nowhere.json"));
}

}  // namespace
}  // namespace fairlead::sim
