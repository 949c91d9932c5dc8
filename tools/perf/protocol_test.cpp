#include "tools/perf/protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace fairlead::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const PerfPlan kPlan{.kind = PerfKind::verbs, .size_max = 4096, .depth = 7, .op = VerbsOp::read, .is_stream = true};
const PerfCommand kCommand{.role = PerfRole::take_put, .size = 4096, .in_flight = 3, .is_checked = true};

TEST(PerfProtocol, WhatIsSentIsReceived) {
  const PerfGreeting greeting =
      parse_perf_greeting(perf_message(PerfGreeting{.release = "1.2", .obstacle = ""})).value();
  EXPECT_EQ(greeting.protocol, kPerfProtocol);
  EXPECT_EQ(greeting.release, "1.2");
  EXPECT_EQ(greeting.obstacle, "");
  EXPECT_EQ(parse_perf_greeting(perf_message(PerfGreeting{.release = "", .obstacle = "busy"})).value().obstacle,
            "busy");

  const PerfPlan plan = parse_perf_plan(perf_message(kPlan)).value();
  EXPECT_EQ(plan.kind, PerfKind::verbs);
  EXPECT_EQ(plan.size_max, 4096);
  EXPECT_EQ(plan.depth, 7);
  EXPECT_FALSE(plan.is_unpacked);
  EXPECT_EQ(plan.op, VerbsOp::read);
  EXPECT_TRUE(plan.is_stream);

  const PerfCommand command = parse_perf_command(perf_message(kCommand)).value();
  EXPECT_EQ(command.role, PerfRole::take_put);
  EXPECT_EQ(command.size, 4096);
  EXPECT_EQ(command.in_flight, 3);
  EXPECT_TRUE(command.is_checked);
  EXPECT_FALSE(command.is_loan);

  const PerfOutcome outcome = parse_perf_outcome(perf_message(PerfOutcome{1, 2, 3, 4, 5})).value();
  EXPECT_EQ(outcome.messages, 1);
  EXPECT_EQ(outcome.bytes, 2);
  EXPECT_EQ(outcome.dropped, 3);
  EXPECT_EQ(outcome.failures, 4);
  EXPECT_EQ(outcome.corrupt, 5);

  EXPECT_EQ(parse_perf_at(perf_message_at("10.0.0.5@udp")).value(), "10.0.0.5@udp");
  EXPECT_TRUE(parse_perf_ready(perf_message_ready()));
  EXPECT_TRUE(is_perf_stop(perf_message_stop()));
  EXPECT_FALSE(is_perf_stop(perf_message_ready()));
}

/// Expects that the parser refuses the message if any of its fields is missing or has one of the bad values.
template <typename Parse>
void expect_checked(const json& good, Parse parse) {
  ASSERT_TRUE(parse(good));
  for (const auto& [key, value] : good.items()) {
    json without = good;
    without.erase(key);
    EXPECT_FALSE(parse(without)) << key;
    for (const json& bad : {json(), json(-1), json(1e30), json(2.5), json::array(), json::object(), json("nonsense"),
                            json(std::numeric_limits<std::uint64_t>::max())}) {
      json changed = good;
      changed[key] = bad;
      EXPECT_FALSE(parse(changed)) << key << ": " << bad;
    }
  }
}

TEST(PerfProtocol, EachFieldOfAPlanAndACommandIsChecked) {
  expect_checked(perf_message(kPlan), parse_perf_plan);
  expect_checked(perf_message(kCommand), parse_perf_command);
}

TEST(PerfProtocol, SizesAndMemoryAreLimited) {
  json command = perf_message(kCommand);
  command["size"] = 0;
  EXPECT_FALSE(parse_perf_command(command));
  command["size"] = kPerfSizeMax + 1;
  EXPECT_FALSE(parse_perf_command(command));
  command["size"] = kPerfSizeMax;
  EXPECT_TRUE(parse_perf_command(command));
  command["in_flight"] = kPerfInFlightMax;
  EXPECT_FALSE(parse_perf_command(command)) << "more than the memory for all transfers in flight";
}

TEST(PerfProtocol, AnotherProtocolIsNamed) {
  json plan = perf_message(kPlan);
  plan["protocol"] = kPerfProtocol + 1;
  const auto parsed = parse_perf_plan(plan);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().status, Status::not_supported);
  EXPECT_THAT(parsed.error().message, HasSubstr("use the same release at both ends"));
}

TEST(PerfProtocol, AnErrorTakesThePlaceOfAnyAnswer) {
  const json error = perf_message_error({Status::system, 0, "no\nmemory"});
  for (const auto& message :
       {parse_perf_at(error).error(), parse_perf_ready(error).error(), parse_perf_outcome(error).error()})
    EXPECT_THAT(message.message, testing::StartsWith("the other side: no"));
  EXPECT_FALSE(parse_perf_ready(error).error().message.contains('\n')) << "it is shown on a terminal";
  EXPECT_FALSE(parse_perf_ready(json{{"error", 5}}));
}

}  // namespace
}  // namespace fairlead::tools
