// `fairlead bulkping` as users run it: a server process and client processes over the loopback.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class Bulkping : public testing::Test {
 protected:
  Words words(const std::string& role, const Words& more) const {
    Words all{FAIRLEAD_COMMAND, "bulkping", role, role == "server" ? "--address" : "--server", address_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  void start_server(const Words& more = {}) {
    Words options{"--json"};
    options.insert(options.end(), more.begin(), more.end());
    server_ = std::make_unique<ChildProcess>(words("server", options));
    ASSERT_TRUE(server_->wait_for_text("serving at", 20s)) << server_->error_output();
  }

  /// Sends SIGINT and returns the server's report.
  Json stop_server() {
    server_->send_signal(SIGINT);
    EXPECT_EQ(server_->wait(20s), 0) << server_->error_output();
    return Json::parse(server_->output(), nullptr, false);
  }

  Finished client(const Words& more) const { return run(words("client", more), 100s); }

  const std::string address_ = fmt::format("127.0.0.1@udp:{}:39:12", free_port());
  std::unique_ptr<ChildProcess> server_;
};

// The client's only free port is the server's port, so the client's own engine is at the address that it calls.
TEST_F(Bulkping, AClientWithoutAServerDoesNotTalkToItself) {
  const std::string port = address_.substr(address_.find(':') + 1, address_.find(':', 15) - address_.find(':') - 1);
  const Finished alone = client({"--set", "port_first=" + port, "--set", "port_count=1"});
  EXPECT_NE(alone.exit_code, 0);
  EXPECT_THAT(alone.error_output, HasSubstr("nobody listens at " + address_));
}

TEST_F(Bulkping, EveryPayloadIsVerifiedAtBothEnds) {
  start_server();
  struct Case {
    std::string size;
    std::uint64_t bytes;
    std::uint64_t threads, loops;
  };
  std::uint64_t bytes = 0, loops = 0;
  for (const Case& each : {Case{"1", 1, 1, 10}, Case{"100", 100, 4, 10}, Case{"4095", 4095, 3, 10},
                           Case{"64K", 65536, 4, 10}, Case{"1000001", 1'000'001, 4, 5}, Case{"64M", 64 << 20, 2, 1}}) {
    const Finished run = client({"--json", "--bulk-size", each.size, "--threads", std::to_string(each.threads),
                                 "--loops", std::to_string(each.loops), "--bulk-timeout", "90"});
    ASSERT_EQ(run.exit_code, 0) << each.size << ": " << run.error_output;
    const Json json = Json::parse(run.output);
    const std::uint64_t expected = each.bytes * each.threads * each.loops;
    EXPECT_EQ(json["bytes_to_server"], expected);
    EXPECT_EQ(json["bytes_to_client"], expected);
    EXPECT_EQ(json["queues"]["pSEND"]["bytes"], expected);
    EXPECT_EQ(json["queues"]["pRECV"]["largest"], each.bytes);
    EXPECT_EQ(json["message_round_trip"]["count"], each.threads * each.loops);
    bytes += expected;
    loops += each.threads * each.loops;
  }
  const Json json = stop_server();
  EXPECT_EQ(json["served"]["messages"], loops);
  EXPECT_EQ(json["served"]["bytes_to_server"], bytes);
  EXPECT_EQ(json["served"]["bytes_to_client"], bytes);
  EXPECT_EQ(json["served"]["corrupt"], 0);
  EXPECT_EQ(json["messages_dropped"], 0);
  EXPECT_EQ(json["queues"]["aRECV"]["adds"], loops);
  EXPECT_EQ(json["queues"]["aSEND"]["successes"], loops);
}

TEST_F(Bulkping, EventsMayComeFromTheMachinesOwnThreadAtEitherEnd) {
  start_server({"--async"});
  const Finished run = client({"--async", "--threads", "3", "--loops", "5", "--bulk-size", "300K"});
  EXPECT_EQ(run.exit_code, 0) << run.error_output;
  EXPECT_EQ(stop_server()["served"]["corrupt"], 0);
}

TEST_F(Bulkping, TheTablesNameTheSixQueues) {
  start_server({"--delay", "0.01"});
  const Finished run = client({"--loops", "3"});
  ASSERT_EQ(run.exit_code, 0) << run.error_output;
  for (const char* word :
       {"mRECV", "mSEND", "pRECV", "pSEND", "aRECV", "aSEND", "time in queue", "p99.9 us", "all verified"}) {
    EXPECT_THAT(run.output, HasSubstr(word));
  }
}

TEST_F(Bulkping, CtrlCEndsAClientWithItsStatistics) {
  start_server();
  ChildProcess client(words("client", {"--loops", "1000000", "--live"}));
  ASSERT_TRUE(client.wait_for_text("loops", 20s)) << client.error_output();
  client.send_signal(SIGINT);
  EXPECT_EQ(client.wait(20s), 130) << client.error_output();
  EXPECT_THAT(client.output(), HasSubstr("interrupted"));
  EXPECT_THAT(client.output(), HasSubstr("mSEND"));
  EXPECT_EQ(stop_server()["served"]["corrupt"], 0);
}

TEST_F(Bulkping, AServerThatIsNotThereIsNamedInOneLine) {
  const Finished run = client({"--message-timeout", "3", "--quiet"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.output, "");
  EXPECT_THAT(run.error_output, StartsWith("fairlead: thread 0 loop 0: "));
  EXPECT_THAT(run.error_output, HasSubstr(address_));
  EXPECT_THAT(run.error_output, HasSubstr("start the peer"));
  EXPECT_EQ(std::ranges::count(run.error_output, '\n'), 1) << run.error_output;
}

TEST_F(Bulkping, ABulkThatTheServerDoesNotTakeIsRefusedWithTheRemedy) {
  start_server({"--bulk-size", "64K"});
  const Finished run = client({"--bulk-size", "65K", "--quiet"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error_output, HasSubstr("larger --bulk-size"));
  EXPECT_EQ(stop_server()["served"]["refused"], 1);
}

TEST_F(Bulkping, AnAddressThatIsTakenIsNamed) {
  start_server();
  const Finished run = tests::run(words("server", {}), 20s);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error_output, HasSubstr(address_.substr(address_.find(':') + 1, 5)));
}

}  // namespace
}  // namespace fairlead::tests
