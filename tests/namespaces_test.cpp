// bulkping between two network namespaces with an MTU of 1500, without loss and with one percent of random loss. All
// payloads arrive and are verified. The namespaces end with the test's processes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/child_process.hpp"
#include "tests/two_namespaces.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr auto kRunAtMost = 100s;

class Namespaces : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto fault = two_.set_up()) GTEST_SKIP() << *fault;
  }

  void run_bulkping(const Words& more) {
    ChildProcess server(two_.enter_first({FAIRLEAD_COMMAND, "bulkping", "server", "--address", "10.77.0.1", "--json"}));
    ASSERT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
    Words words{FAIRLEAD_COMMAND, "bulkping",       "client", "--server",          "10.77.0.1",
                "--json",         "--bulk-timeout", "90",     "--message-timeout", "30"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished client = run(two_.enter_second(words), kRunAtMost);
    ASSERT_EQ(client.exit_code, 0) << client.error_output;
    server.send_signal(SIGINT);
    ASSERT_EQ(server.wait(20s), 0) << server.error_output();
    const Json at_client = Json::parse(client.output), at_server = Json::parse(server.output());
    EXPECT_GT(at_client["bytes_to_server"], 0);
    EXPECT_EQ(at_client["bytes_to_server"], at_server["served"]["bytes_to_server"]);
    EXPECT_EQ(at_client["bytes_to_client"], at_server["served"]["bytes_to_client"]);
    EXPECT_EQ(at_server["served"]["corrupt"], 0);
    resends_ = at_client["counters"].value("link.resends", 0U) + at_server["counters"].value("link.resends", 0U);
  }

  /// Runs the client with PID and mount namespaces of its own, as in a container.
  Json run_client_apart(const Words& environment) {
    Words words{"env"};
    words.insert(words.end(), environment.begin(), environment.end());
    Words serve = words;
    serve.insert(serve.end(), {FAIRLEAD_COMMAND, "bulkping", "server", "--address", "10.77.0.1", "--json"});
    ChildProcess server(two_.enter_first(serve));
    EXPECT_TRUE(server.wait_for_text("serving at", 20s)) << server.error_output();
    words.insert(words.end(),
                 {"FAIRLEAD_FLIGHT=stderr", "unshare", "--pid", "--mount", "--fork", "--kill-child", FAIRLEAD_COMMAND,
                  "bulkping", "client", "--server", "10.77.0.1", "--json", "--loops", "20", "--bulk-size", "1M"});
    const Finished client = run(two_.enter_second(words), kRunAtMost);
    EXPECT_EQ(client.exit_code, 0) << client.error_output;
    said_ = client.error_output;
    server.send_signal(SIGINT);
    EXPECT_EQ(server.wait(20s), 0) << server.error_output();
    return Json::parse(client.output, nullptr, false);
  }

  TwoNamespaces two_;
  std::uint64_t resends_ = 0;
  std::string said_;
};

TEST_F(Namespaces, WithoutLossAllPayloadsAreVerified) {
  run_bulkping({"--bulk-size", "1M", "--loops", "10", "--threads", "4"});
}

TEST_F(Namespaces, WithSegmentsLostOneByOneAllPayloadsAreVerified) {
  if (const auto fault = two_.lose()) GTEST_SKIP() << *fault;
  if (const auto fault = two_.cut_segments()) GTEST_SKIP() << *fault;
  run_bulkping({"--bulk-size", "4M", "--loops", "2", "--threads", "4"});
  EXPECT_GT(resends_, 0u);
}

TEST_F(Namespaces, WithWholeTrainsLostAllPayloadsAreVerified) {
  if (const auto fault = two_.lose()) GTEST_SKIP() << *fault;
  run_bulkping({"--bulk-size", "4M", "--loops", "4", "--threads", "4"});
  EXPECT_GT(resends_, 0u);
}

TEST_F(Namespaces, WithASharedDirectoryTheyUseSharedMemory) {
  const std::string directory = testing::TempDir() + "/namespaces_test";
  std::filesystem::create_directory(directory);
  const Json client = run_client_apart({"FAIRLEAD_SHM_DIRECTORY=" + directory});
  EXPECT_GT(client["counters"].value("shm.bytes_sent", 0U), 0U);
  EXPECT_THAT(said_, testing::HasSubstr("is reached through shared memory"));
  EXPECT_TRUE(std::filesystem::is_empty(directory)) << "nothing is left";
  std::filesystem::remove_all(directory);
}

TEST_F(Namespaces, WithoutOneTheyUseUdpAndSayWhy) {
  const Json client = run_client_apart({"FAIRLEAD_PATH=auto"});
  EXPECT_EQ(client["counters"].value("shm.messages_sent", 1U), 0U);
  EXPECT_GT(client["counters"].value("link.messages_delivered", 0U), 0U);
  EXPECT_THAT(said_, testing::HasSubstr("is reached over UDP: cannot connect to the Unix socket"));
}

}  // namespace
}  // namespace fairlead::tests
