// SIGKILL at random moments: the other side never hangs and never sees wrong data, the port is free at once.
// FAIRLEAD_KILLS=100 makes it long, FAIRLEAD_SEED chooses other moments.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/child_process.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr auto kEndsWithin = 15s;  // what the time-outs below add up to, and much patience with a busy host

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Kill : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> start_server() const {
    auto server = std::make_unique<ChildProcess>(
        std::vector<std::string>{FAIRLEAD_COMMAND, "bulkping", "server", "--address", address_, "--json",
                                 "--message-timeout", "1", "--bulk-timeout", "2"});
    EXPECT_TRUE(server->wait_for_text("serving at", kEndsWithin)) << server->error_output();
    return server;
  }

  std::vector<std::string> client_words(const std::string& loops) const {
    return {FAIRLEAD_COMMAND, "bulkping", "client",      "--server", address_,  "--loops",           loops,
            "--threads",      "2",        "--bulk-size", "2M",       "--quiet", "--message-timeout", "1",
            "--bulk-timeout", "2"};
  }

  void expect_one_line(const std::string& error) const {
    EXPECT_EQ(std::ranges::count(error, '\n'), 1) << error;
    EXPECT_THAT(error, Not(HasSubstr("corrupt")));
    EXPECT_THAT(error, HasSubstr(address_));
  }

  void pause() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 150'000)); }

  const int port_ = free_port();
  const std::string address_ = fmt::format("127.0.0.1@udp:{}:39:12", port_);
  const std::uint64_t kills_ = number_from("FAIRLEAD_KILLS", 20);
  std::mt19937_64 random_{number_from("FAIRLEAD_SEED", 1)};
};

TEST_F(Kill, AClientWhoseServerDiesEndsWithOneLineAndThePortIsFreeAtOnce) {
  for (std::uint64_t i = 0; i < kills_ / 4; ++i) {
    auto server = start_server();
    ChildProcess client(client_words("1000000"));
    pause();
    server->send_signal(SIGKILL);
    ASSERT_EQ(server->wait(kEndsWithin), 128 + SIGKILL);
    EXPECT_TRUE(can_bind(port_)) << "kill " << i;
    ASSERT_EQ(client.wait(kEndsWithin), 1) << "kill " << i << ": " << client.error_output();
    expect_one_line(client.error_output());
  }
}

TEST_F(Kill, AClientWhoseServerIsReplacedAtOnceEndsOrGoesOnWithTheNext) {
  for (std::uint64_t i = 0; i < kills_ / 4; ++i) {
    auto server = start_server();
    ChildProcess client(client_words("1000000"));
    pause();
    server->send_signal(SIGKILL);
    ASSERT_EQ(server->wait(kEndsWithin), 128 + SIGKILL);
    const auto next = start_server();
    // A request that failed is sent again, and may find the next server; then the client goes on.
    const bool goes_on = client.wait(4s) < 0;
    client.send_signal(SIGINT);
    const int exit_code = client.wait(kEndsWithin);
    next->send_signal(SIGINT);
    ASSERT_EQ(next->wait(kEndsWithin), 0);
    const Json json = Json::parse(next->output());
    EXPECT_EQ(json["served"]["corrupt"], 0);
    if (goes_on) {
      EXPECT_EQ(exit_code, 130) << "kill " << i << ": " << client.error_output();
      EXPECT_GT(json["served"]["messages"], 0) << "kill " << i;
    } else {
      EXPECT_EQ(exit_code, 1) << "kill " << i;
      expect_one_line(client.error_output());
    }
  }
}

TEST_F(Kill, AServerWhoseClientsDieServesTheNext) {
  const auto server = start_server();
  for (std::uint64_t i = 0; i < kills_ / 2; ++i) {
    ChildProcess client(client_words("1000000"));
    pause();
    client.send_signal(SIGKILL);
    ASSERT_EQ(client.wait(kEndsWithin), 128 + SIGKILL);
    const Finished next = run(client_words("2"), kEndsWithin);
    ASSERT_EQ(next.exit_code, 0) << "kill " << i << ": " << next.error_output;
  }
  server->send_signal(SIGINT);
  ASSERT_EQ(server->wait(kEndsWithin), 0);
  const Json json = Json::parse(server->output());
  EXPECT_EQ(json["served"]["corrupt"], 0);
  EXPECT_GE(json["served"]["messages"], kills_ / 2 * 4);
  // Every operation has ended, however its client did.
  for (const auto& [name, queue] : json["queues"].items()) {
    if (name != "mRECV") {
      EXPECT_EQ(queue["adds"], queue["successes"].get<std::uint64_t>() + queue["failures"].get<std::uint64_t>())
          << name;
    }
  }
}

}  // namespace
}  // namespace fairlead::tests
