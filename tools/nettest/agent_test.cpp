// An agent's answers to valid and invalid commands; this test is the console.

#include "tools/nettest/agent.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

using Json = nlohmann::json;

class NettestAgentTest : public testing::Test {
 protected:
  NettestAgentTest() {
    EXPECT_TRUE(agent_.start("0@lo:20480:39:13"));
    EXPECT_TRUE(console_.start("0@lo:20480:39:1"));
  }
  Json ask(const Json& command) {
    EXPECT_TRUE(console_.send(console_.find(agent_.address()).value(), command));
    agent_.serve(std::chrono::seconds{1});
    const auto answer = console_.receive(now() + std::chrono::seconds{1});
    return answer ? answer->body : Json();
  }
  static Json command(const char* what, std::uint64_t run = 1) { return {{"do", what}, {"run", run}, {"number", 7}}; }
  static Json init(const NettestPlan& plan, std::uint64_t run = 1) {
    Json json = command("init", run);
    json["plan"] = plan;
    json["servers"] = Json::array();
    return json;
  }

  net::Domain domain_ = net::Domain::open().value();
  NettestAgent agent_{domain_};
  NettestPost console_{domain_};
};

TEST_F(NettestAgentTest, ItServesOneConsoleAtATime) {
  const Json ready = ask(init({}));
  EXPECT_EQ(ready["number"], 7);
  EXPECT_FALSE(ready.contains("error")) << ready;
  EXPECT_TRUE(ask(init({})).contains("error")) << "it has its part already";
  EXPECT_EQ(ask(command("status", 2))["error"], "the agent works for another console");
  EXPECT_EQ(ask(command("status"))["figures"]["sent"]["done"], 0);
  EXPECT_TRUE(ask(command("stop"))["is_done"]);
  EXPECT_TRUE(ask(command("status")).contains("error")) << "it has none any more";
  EXPECT_FALSE(ask(init({}, 2)).contains("error"));
}

TEST_F(NettestAgentTest, WhatIsNoCommandIsAnsweredWithAnError) {
  Json no_servers = init({});
  no_servers.erase("servers");
  Json odd_size = init({});
  odd_size["plan"]["size"] = "much";
  NettestPlan too_much;
  too_much.size = kNettestSizeMax;
  too_much.concurrency = kNettestConcurrencyMax;
  Json many_servers = init({});
  many_servers["servers"] = {"0@lo:20480:39:3", "0@lo:20480:39:4"};
  Json nowhere = init({});
  nowhere["servers"] = {"nowhere"};
  for (const Json& bad :
       {command("dance"), Json({{"do", 1}, {"run", 1}}), no_servers, odd_size, init(too_much), many_servers, nowhere})
    EXPECT_TRUE(ask(bad).contains("error")) << bad;
  EXPECT_FALSE(ask(init({})).contains("error")) << "nothing is left of them";
  EXPECT_TRUE(ask(command("dance")).contains("error"));
}

// The answer belongs to the second letter.
TEST_F(NettestAgentTest, WhatIsNoCommandIsNotAnswered) {
  for (const Json& letter : {Json::object(), Json({{"error", "no command either"}, {"run", 1}, {"number", 3}})}) {
    EXPECT_TRUE(console_.send(console_.find(agent_.address()).value(), letter));
    agent_.serve(std::chrono::seconds{1});
    EXPECT_EQ(ask(command("status"))["number"], 7);
  }
}

TEST_F(NettestAgentTest, APlanThatAsksForMoreThanAnAgentGivesIsRefused) {
  NettestPlan patient;
  patient.timeout = kNettestTimeoutMax;
  EXPECT_TRUE(patient.check());
  patient.timeout += Duration{1};
  EXPECT_FALSE(patient.check()) << "it would wait for that before it obeys again";
  NettestPlan many;
  many.size = kNettestSizeMin;
  many.concurrency = 4096;
  many.clients = 16;
  EXPECT_TRUE(many.check());
  many.clients = 17;
  EXPECT_FALSE(many.check()) << "a buffer of 32 bytes is not free either";
  std::swap(many.clients, many.servers);
  EXPECT_FALSE(many.check());
}

// An answer that repeated it would need equally deep recursion.
TEST_F(NettestAgentTest, ADeepNameOfARunIsNotRepeated) {
  const std::string deep = std::string(30'000, '[') + std::string(30'000, ']');
  const Json answer = ask({{"do", "status"}, {"number", Json::parse(deep)}});
  EXPECT_TRUE(answer.contains("error"));
  EXPECT_FALSE(answer.contains("number"));
}

TEST_F(NettestAgentTest, WhatIsNoJsonIsDropped) {
  net::TransferMachine stranger(domain_);
  ASSERT_TRUE(stranger.deliver_synchronously());
  ASSERT_TRUE(stranger.start_and_wait("0@lo:20480:39:2"));
  const auto out = net::Buffer::allocate(domain_, 100).value();
  ASSERT_EQ(out->set_callback([](const net::BufferEvent&) {}), Status::ok);
  const auto there = stranger.create_end_point(agent_.address()).value();
  ASSERT_EQ(stranger.add(*out, net::MessageSend{.to = there}), Status::ok);
  agent_.serve(std::chrono::milliseconds{1});
  EXPECT_FALSE(ask(init({})).contains("error"));
}

}  // namespace
}  // namespace fairlead::tools
