// The console's reaction to agents that answer wrongly; this test is the agent.

#include "tools/nettest/console.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

class NettestConsoleTest : public testing::Test {
 protected:
  using Json = nlohmann::json;
  using Answer = std::function<void(const NettestPost::Letter& command, Json answer)>;

  NettestConsoleTest() {
    EXPECT_TRUE(console_.start("0@lo:20480:39:1"));
    EXPECT_TRUE(agent_.start("0@lo:20480:39:2"));
    EXPECT_TRUE(stranger_.start("0@lo:20480:40:3"));
  }
  /// Returns the console's error after a first answer, the last one that it gets.
  std::string error_after(const Answer& answer) {
    std::jthread agent([&] {
      const auto command = agent_.receive(now() + std::chrono::seconds{10});
      if (command) answer(*command, {{"run", command->body["run"]}, {"number", command->body["number"]}});
    });
    const auto state = console_.run({}, {{agent_.address()}, {agent_.address()}}, {}, {});
    return state ? "" : state.error().message;
  }
  void reply(NettestPost& from, const NettestPost::Letter& command, Json answer, const char* key, std::string value) {
    answer[key] = std::move(value);
    EXPECT_TRUE(from.send(from.find(command.from.address()).value(), answer));
  }

  net::Domain domain_ = net::Domain::open().value();
  NettestConsole console_{domain_};
  NettestPost agent_{domain_}, stranger_{domain_};
};

TEST_F(NettestConsoleTest, AnAgentSpeaksForItselfOnly) {
  const std::string error = error_after([&](const NettestPost::Letter& command, const Json& answer) {
    reply(stranger_, command, answer, "error", "forged");
    reply(agent_, command, answer, "error", "\x1b[2J its own");
  });
  EXPECT_EQ(error, "agent " + agent_.address() + ": ?[2J its own");
}

TEST_F(NettestConsoleTest, AnAgentDoesNotTurnClientsToSomebodyElse) {
  const std::string error = error_after([&](const NettestPost::Letter& command, const Json& answer) {
    reply(agent_, command, answer, "address", stranger_.address());
  });
  EXPECT_NE(error.find("which is not its own"), std::string::npos) << error;
}

// An agent that hears nothing for 15 s gives the run up. Servers did so in every longer run.
TEST_F(NettestConsoleTest, AsksServersTooWhileTheRunLasts) {
  int asked = 0;  // of the server
  const auto obey = [&](NettestPost& agent, bool is_server) {
    while (const auto command = agent.receive(now() + std::chrono::seconds{10})) {
      const std::string what = command->body["do"];
      asked += is_server && what == "status";
      const Json answer{{"run", command->body["run"]},
                        {"number", command->body["number"]},
                        {"address", agent.address()},
                        {"figures", NettestFigures()},
                        {"is_done", is_server}};
      EXPECT_TRUE(agent.send(agent.find(command->from.address()).value(), answer));
      if (what == "stop") return;
    }
  };
  const std::jthread client([&] { obey(agent_, false); });
  std::jthread server([&] { obey(stranger_, true); });
  const auto state = console_.run({}, {{agent_.address()}, {stranger_.address()}}, std::chrono::seconds{1},
                                  [](const NettestState&) {});
  ASSERT_TRUE(state) << state.error().message;
  server.join();
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace fairlead::tools
