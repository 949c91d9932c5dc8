// `fairlead nettest` as users run it: a console, and four processes with an agent each (two clients, two servers).

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/child_process.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class Nettest : public testing::Test {
 protected:
  static constexpr std::size_t kAgents = 4;

  void start_agents() {
    for (std::size_t i = 0; i < kAgents; ++i) {
      agents_.push_back(
          std::make_unique<ChildProcess>(Words{FAIRLEAD_COMMAND, "nettest", "agent", "--address", addresses_.at(i)}));
    }
    for (const auto& agent : agents_) ASSERT_TRUE(agent->wait_for_text("agent at", 20s)) << agent->error_output();
  }
  Finished console(const Words& more) const {
    Words words{FAIRLEAD_COMMAND,
                "nettest",
                "console",
                "--clients",
                addresses_[0] + "," + addresses_[1],
                "--servers",
                addresses_[2] + "," + addresses_[3]};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, 60s);
  }
  Json result(const Words& more) const {
    Words words{"--json", "--timeout", "20"};  // this host may be busy with other tests
    words.insert(words.end(), more.begin(), more.end());
    const Finished run = console(words);
    EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
    EXPECT_EQ(std::ranges::count(run.output, '\n'), 1);
    return Json::parse(run.output, nullptr, false);
  }
  static void expect_all(const Json& tally, std::uint64_t count) {
    EXPECT_EQ(tally["done"], count);
    EXPECT_EQ(tally["failed"], 0);
    EXPECT_EQ(tally["bad"], 0);
  }

  std::vector<std::string> addresses_ = [] {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < kAgents; ++i) all.push_back(fmt::format("127.0.0.1@udp:{}:39:13", free_port()));
    return all;
  }();
  std::vector<std::unique_ptr<ChildProcess>> agents_;
};

// The same agents serve several runs.
TEST_F(Nettest, TheTotalsOfBothSidesAgree) {
  start_agents();
  const Json ping = result({"--count", "500", "--size", "4K", "--verify"});
  const std::uint64_t all = 4 * 500;
  for (const char* side : {"at_clients", "at_servers"}) {
    for (const char* what : {"sent", "received", "round_trips"}) expect_all(ping[side][what], all);
    EXPECT_EQ(ping[side]["bytes_sent"], all * 4096);
    EXPECT_EQ(ping[side]["bytes_received"], all * 4096);
  }
  EXPECT_EQ(ping["round_trip_ns"]["count"], all);
  EXPECT_LE(ping["round_trip_ns"]["least"], ping["round_trip_ns"]["mean"]);
  EXPECT_LE(ping["round_trip_ns"]["mean"], ping["round_trip_ns"]["greatest"]);
  EXPECT_TRUE(ping["agree"]);

  const Json bulk =
      result({"--type", "bulk", "--count", "10", "--size", "256K", "--verify", "--server-concurrency", "2"});
  for (const char* side : {"at_clients", "at_servers"}) {
    for (const char* what : {"bulk_sent", "bulk_received", "round_trips"}) expect_all(bulk[side][what], 40);
    EXPECT_EQ(bulk[side]["bytes_received"], 40 * 256 * 1024);
  }
  expect_all(bulk["at_servers"]["received"], 40);

  const Json timed = result({"--time", "0.2"});
  EXPECT_GT(timed["round_trip_ns"]["count"], 0);
  EXPECT_TRUE(timed["agree"]);

  for (const auto& agent : agents_) {
    agent->send_signal(SIGINT);
    EXPECT_EQ(agent->wait(20s), 0) << agent->error_output();
  }
}

TEST_F(Nettest, FourHostsOnOneBridge) {
  if (const auto fault = TwoNamespaces().set_up()) GTEST_SKIP() << *fault;
  const Finished both = run({FAIRLEAD_SOURCE_FOLDER "/scripts/nettest_namespaces.sh", "0.2", FAIRLEAD_COMMAND}, 60s);
  EXPECT_EQ(both.exit_code, 0) << both.error_output;
  EXPECT_THAT(both.output, HasSubstr("ping of 4K, 2 clients, 2 servers"));
  EXPECT_THAT(both.output, HasSubstr("bulk of 1M, 2 clients, 2 servers"));
}

TEST_F(Nettest, AnAgentThatIsMissingIsNamedWithTheCommandThatStartsIt) {
  const Finished alone = console({"--set", "give_up_after=200"});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_THAT(alone.error_output, HasSubstr("start `fairlead nettest agent --address " + addresses_[2]));
}

// It runs, and answers: another start would not help.
TEST_F(Nettest, AnAgentThatRefusesTheConsoleIsNotToBeStarted) {
  const std::string key = testing::TempDir() + "nettest_test.psk";
  ASSERT_EQ(run({FAIRLEAD_COMMAND, "keygen", "--psk", key}).exit_code, 0);
  for (const std::size_t i : {0, 2}) {
    agents_.push_back(
        std::make_unique<ChildProcess>(Words{"env", "FAIRLEAD_PATH=udp", "FAIRLEAD_SEAL=psk:" + key, FAIRLEAD_COMMAND,
                                             "nettest", "agent", "--address", addresses_[i]}));
    ASSERT_TRUE(agents_.back()->wait_for_text("agent at", 20s)) << agents_.back()->error_output();
  }
  const Finished refused = run({"env", "FAIRLEAD_PATH=udp", FAIRLEAD_COMMAND, "nettest", "console", "--clients",
                                addresses_[0], "--servers", addresses_[2]},
                               60s);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error_output,
              AllOf(HasSubstr("accepts only sealed traffic"), Not(HasSubstr("start `fairlead nettest agent"))));
  std::filesystem::remove(key);
}

TEST_F(Nettest, ThatCannotBeIsAnErrorOfUsage) {
  for (const Words& more : {Words{"--size", "31"}, Words{"--type", "pong"},
                            Words{"--size", "1G", "--concurrency", "64"}, Words{"--clients", addresses_[2]}}) {
    const Finished refused = console(more);
    EXPECT_EQ(refused.exit_code, 2) << more.front();
    EXPECT_FALSE(refused.error_output.empty());
  }
}

TEST_F(Nettest, ItShowsHowToStartItsAgents) {
  const Finished shown = console({"--show-agents"});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.output, HasSubstr("ssh 127.0.0.1 fairlead nettest agent --address '" + addresses_[3]));
}

}  // namespace
}  // namespace fairlead::tests
