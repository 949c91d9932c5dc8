// SIGKILL at random moments: the other side never hangs and never sees wrong data, and the port is free at once.
// FAIRLEAD_TEST_KILLS=100 sets the number of kills, FAIRLEAD_TEST_SEED the random seed.

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
#include "tests/environment.hpp"
#include "tests/kernel_queue.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr auto kEndsWithin = 15s;  // the sum of the timeouts below, with a reserve for a busy host

class Kill : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> start_server() const {
    auto server = std::make_unique<ChildProcess>(
        std::vector<std::string>{FAIRLEAD_COMMAND, "bulkping", "server", "--address", address_, "--json",
                                 "--message-timeout", "1", "--bulk-timeout", "2"});
    EXPECT_TRUE(server->wait_for_text("serving at", kEndsWithin)) << server->error_output();
    return server;
  }

  struct Asked {
    const char* loops = "1000000";
    const char* threads = "2";
    const char *message_timeout = "1", *bulk_timeout = "2";
  };
  std::vector<std::string> client_words(const Asked& asked) const {
    return {FAIRLEAD_COMMAND,
            "bulkping",
            "client",
            "--server",
            address_,
            "--loops",
            asked.loops,
            "--threads",
            asked.threads,
            "--bulk-size",
            "2M",
            "--quiet",
            "--message-timeout",
            asked.message_timeout,
            "--bulk-timeout",
            asked.bulk_timeout};
  }

  void expect_one_line(const std::string& error) const {
    EXPECT_EQ(std::ranges::count(error, '\n'), 1) << error;
    EXPECT_THAT(error, Not(HasSubstr("corrupt")));
    EXPECT_THAT(error, HasSubstr(address_));
  }

  /// Stops the server with SIGINT and returns its report.
  static Json served_by(ChildProcess& server) {
    server.send_signal(SIGINT);
    EXPECT_EQ(server.wait(kEndsWithin), 0) << server.error_output();
    const Json served = Json::parse(server.output())["served"];
    EXPECT_EQ(served["corrupt"], 0);
    return served;
  }

  /// Waits until datagrams are queued at the port of the stopped server.
  bool wait_until_asked() const {
    for (const auto end = std::chrono::steady_clock::now() + kEndsWithin; std::chrono::steady_clock::now() < end;) {
      if (kernel_queue(port_).waiting > 0) return true;
      std::this_thread::sleep_for(2ms);
    }
    return false;
  }

  void pause() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 150'000)); }

  const int port_ = free_port();
  const std::string address_ = fmt::format("127.0.0.1@udp:{}:39:12", port_);
  const std::uint64_t kills_ = number_from("FAIRLEAD_TEST_KILLS", 20);
  std::mt19937_64 random_{number_from("FAIRLEAD_TEST_SEED", 1)};
};

TEST_F(Kill, AClientWhoseServerDiesEndsWithOneLineAndThePortIsFreeAtOnce) {
  for (std::uint64_t i = 0; i < kills_ / 4; ++i) {
    auto server = start_server();
    ChildProcess client(client_words({}));
    pause();
    server->send_signal(SIGKILL);
    ASSERT_EQ(server->wait(kEndsWithin), 128 + SIGKILL);
    EXPECT_TRUE(can_bind(port_)) << "kill " << i;
    ASSERT_EQ(client.wait(kEndsWithin), 1) << "kill " << i << ": " << client.error_output();
    expect_one_line(client.error_output());
  }
}

// The first server never answered the client's request. The client repeats it, and the next server answers.
TEST_F(Kill, AClientThatOnlyAskedGoesOnWithTheNextServer) {
  auto server = start_server();
  server->send_signal(SIGSTOP);
  ChildProcess client(client_words({.loops = "3", .message_timeout = "60", .bulk_timeout = "60"}));
  ASSERT_TRUE(wait_until_asked()) << client.error_output();
  server->send_signal(SIGKILL);
  ASSERT_EQ(server->wait(kEndsWithin), 128 + SIGKILL);
  const auto next = start_server();
  EXPECT_EQ(client.wait(60s), 0) << client.error_output();
  EXPECT_EQ(served_by(*next)["messages"], 2 * 3);
}

// The client's state at the kill decides its fate: it continues with the next server, or ends because an answer is
// missing.
TEST_F(Kill, AClientWhoseServerIsReplacedNeverHangsNorSeesWrongData) {
  for (std::uint64_t i = 0; i < kills_ / 4; ++i) {
    auto server = start_server();
    ChildProcess client(client_words({.threads = "1"}));  // with two, one could continue and one end
    pause();
    server->send_signal(SIGKILL);
    ASSERT_EQ(server->wait(kEndsWithin), 128 + SIGKILL);
    const auto next = start_server();
    const auto idle = cpu_time_of(next->pid()).value();
    const auto has_work = [&] { return cpu_time_of(next->pid()).value() > idle + 200ms; };
    for (int look = 0; look < 10'000 && client.wait(5ms) < 0 && !has_work(); ++look) continue;
    if (client.wait(0ms) < 0) {
      EXPECT_TRUE(has_work()) << "kill " << i << ": it hangs";
      client.send_signal(SIGINT);
      EXPECT_EQ(client.wait(kEndsWithin), 130) << "kill " << i << ": " << client.error_output();
      EXPECT_GT(served_by(*next)["messages"], 0) << "kill " << i;
    } else {
      EXPECT_EQ(client.wait(0ms), 1) << "kill " << i;
      expect_one_line(client.error_output());
      EXPECT_EQ(served_by(*next)["messages"], 0) << "kill " << i;
    }
  }
}

TEST_F(Kill, AServerWhoseClientsDieServesTheNext) {
  const auto server = start_server();
  for (std::uint64_t i = 0; i < kills_ / 2; ++i) {
    ChildProcess client(client_words({}));
    pause();
    client.send_signal(SIGKILL);
    ASSERT_EQ(client.wait(kEndsWithin), 128 + SIGKILL);
    const Finished next = run(client_words({.loops = "2"}), kEndsWithin);
    ASSERT_EQ(next.exit_code, 0) << "kill " << i << ": " << next.error_output;
  }
  server->send_signal(SIGINT);
  ASSERT_EQ(server->wait(kEndsWithin), 0);
  const Json json = Json::parse(server->output());
  EXPECT_EQ(json["served"]["corrupt"], 0);
  EXPECT_GE(json["served"]["messages"], kills_ / 2 * 4);
  // Every operation has ended, also those of killed clients.
  for (const auto& [name, queue] : json["queues"].items()) {
    if (name != "mRECV") {
      EXPECT_EQ(queue["adds"], queue["successes"].get<std::uint64_t>() + queue["failures"].get<std::uint64_t>())
          << name;
    }
  }
}

}  // namespace
}  // namespace fairlead::tests
