// What an engine reports by itself when a peer stalls or is lost.

#include "transport/flight_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/engine.hpp"
#include "path/faulty_path.hpp"
#include "path/sim_network.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kFirstNumber = 34U << 12 | 1U;

base::SocketAddress host_number(std::uint8_t number) {
  return *base::SocketAddress::from_ip("10.0.0." + std::to_string(number), 20480);
}

class FlightLogTest : public testing::Test {
 protected:
  FlightLogTest() {
    for (std::uint8_t i = 0; i < 2; ++i) {
      engines_[i] = std::make_unique<engine::Engine>(*network_.attach(host_number(i)), host_number(i),
                                                     engine::EngineOptions(), 100U + i, i + 1U);
      ports_[i] = *engines_[i]->ports().open(kFirstNumber);
      EXPECT_EQ(engines_[i]->ports().find(ports_[i])->events->reserve(1000), Status::ok);
    }
  }

  void send(std::uint64_t length) {
    engine::OperationHandle operation;
    ASSERT_EQ(engines_[0]->messages().send(
                  ports_[0], {.to = {host_number(1), kFirstNumber}, .part = {{&piece_, 1}, length}}, operation, now_),
              Status::ok);
  }

  void run(base::Duration span) {
    const base::Instant end = now_ + span;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      bool any = false;
      for (const auto& engine : engines_) any |= engine->progress(now_);
      if (any) continue;
      base::Instant next = network_.next_event();
      for (const auto& engine : engines_) next = std::min(next, engine->next_deadline());
      if (next > end) break;
      now_ = std::max(next, now_ + 1ns);
      network_.advance(now_);
    }
    now_ = end;
  }

  void cut(double loss_there, double loss_back) {
    network_.set_link(host_number(0), host_number(1), {.loss = loss_there});
    network_.set_link(host_number(1), host_number(0), {.loss = loss_back});
  }

  path::SimNetwork network_{1};
  base::Instant now_{1s};
  std::array<std::unique_ptr<engine::Engine>, 2> engines_;
  std::array<engine::PortHandle, 2> ports_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(100'000);
  iovec piece_{bytes_.data(), bytes_.size()};
};

TEST_F(FlightLogTest, TellsTheLastEventsOnRequest) {
  EXPECT_EQ(engines_[0]->describe_flight(host_number(1), now_), "");
  send(100);
  run(50ms);
  const std::string text = engines_[0]->describe_flight(host_number(1), now_);
  EXPECT_TRUE(text.starts_with("the last ")) << text;
  for (const char* part : {"with 10.0.0.1:20480", "submitted 1 messages, 100 bytes", "connected", " datagrams, ",
                           "1 segments acknowledged"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_NE(engines_[1]->describe_flight(host_number(0), now_), "");
  EXPECT_FALSE(engines_[0]->has_report());
}

TEST_F(FlightLogTest, ReportsAStallOnceAndItsEnd) {
  send(100);
  run(50ms);
  cut(1, 1);
  send(50'000);
  run(2s);
  ASSERT_TRUE(engines_[0]->has_report());
  const std::string stall = text_of(engines_[0]->take_report());
  EXPECT_TRUE(stall.starts_with("waiting for 10.0.0.1:20480 for ")) << stall;
  EXPECT_NE(stall.find("nothing was heard from it"), std::string::npos) << stall;
  EXPECT_EQ(std::ranges::count(stall, '\n'), 1) << stall;
  cut(0, 0);
  run(2s);
  ASSERT_TRUE(engines_[0]->has_report());
  EXPECT_TRUE(text_of(engines_[0]->take_report()).starts_with("10.0.0.1:20480 moves again after "));
  EXPECT_FALSE(engines_[1]->has_report());
}

TEST_F(FlightLogTest, ALostPeersReportHasTheCauseAndItsLastEvents) {
  send(100);
  run(50ms);
  cut(1, 1);
  send(50'000);
  run(20s);
  ASSERT_TRUE(engines_[0]->has_report());
  const std::string report = text_of(engines_[0]->take_report());
  for (const char* part :
       {"waiting for 10.0.0.1:20480", "no ack from 10.0.0.1:20480 for ", "the last ", "again after a timeout",
        "ended 1 operations without success", "gave the peer up: peer silent"})
    EXPECT_NE(report.find(part), std::string::npos) << part << " in " << report;
}

TEST_F(FlightLogTest, APeerThatNeverAnsweredIsReported) {
  cut(1, 1);
  send(100);
  run(10s);
  ASSERT_TRUE(engines_[0]->has_report());
  const std::string report = text_of(engines_[0]->take_report());
  EXPECT_NE(report.find("it has not answered our hello"), std::string::npos) << report;
  EXPECT_NE(report.find("never heard from 10.0.0.1:20480"), std::string::npos) << report;
}

TEST_F(FlightLogTest, AReceiverReportsAMessageThatStopsHalfWay) {
  std::vector<std::byte> place(bytes_.size());
  const iovec into{place.data(), place.size()};
  engine::OperationHandle receive;
  ASSERT_EQ(engines_[1]->messages().post_receive(ports_[1], {.memory = {&into, 1}, .size_min = 1}, receive),
            Status::ok);
  network_.set_default_link({.bytes_per_second = 100'000, .queue_bytes_max = 20'000});
  send(100'000);
  run(500ms);
  cut(1, 1);
  run(2s);
  ASSERT_TRUE(engines_[1]->has_report());
  const std::string report = text_of(engines_[1]->take_report());
  EXPECT_NE(report.find("1 messages from it have arrived in part"), std::string::npos) << report;
}

TEST_F(FlightLogTest, AnIdleEngineNeedsNoPass) {
  send(100);
  run(10s);
  EXPECT_EQ(engines_[0]->next_deadline(), base::kNever);
  EXPECT_EQ(engines_[1]->next_deadline(), base::kNever);
}

TEST_F(FlightLogTest, SmoothTrafficIsNotWorthAReport) {
  for (int i = 0; i < 50; ++i) {
    send(20'000);
    run(100ms);
  }
  EXPECT_FALSE(engines_[0]->has_report());
  EXPECT_FALSE(engines_[1]->has_report());
}

TEST_F(FlightLogTest, APeerThatEndsInOrderIsNoTrouble) {
  send(100);
  run(50ms);
  engines_[0]->take_leave(now_);
  run(50ms);
  engines_[0]->farewell(now_);
  run(50ms);
  EXPECT_THAT(engines_[1]->describe_peer(host_number(0), now_), testing::HasSubstr("as it had announced"));
  EXPECT_FALSE(engines_[1]->has_report()) << text_of(engines_[1]->take_report());
}

TEST_F(FlightLogTest, APeerThatEndsInOrderBeforeItTookEverythingIsReported) {
  send(100);
  run(50ms);
  cut(1, 0);
  send(50'000);
  engines_[1]->take_leave(now_);
  run(50ms);
  ASSERT_TRUE(engines_[0]->has_report());
  EXPECT_THAT(text_of(engines_[0]->take_report()), testing::HasSubstr("as it had announced"));
}

// The engine at 10.0.0.2 takes itself for 10.0.0.9, as behind a NAT.
TEST_F(FlightLogTest, ATranslatedAddressIsReportedByBothEnds) {
  send(100);
  run(50ms);
  for (const auto& engine : engines_) EXPECT_FALSE(engine->has_report()) << text_of(engine->take_report());
  engine::Engine inside(*network_.attach(host_number(2)), host_number(9), engine::EngineOptions(), 300, 3);
  const auto port = *inside.ports().open(kFirstNumber);
  ASSERT_EQ(inside.ports().find(port)->events->reserve(10), Status::ok);
  engine::OperationHandle operation;
  ASSERT_EQ(inside.messages().send(port, {.to = {host_number(1), kFirstNumber}, .part = {{&piece_, 1}, 100}}, operation,
                                   now_),
            Status::ok);
  for (int i = 0; i < 10; ++i) {
    inside.progress(now_);
    run(10ms);
  }
  for (engine::Engine* const engine : {&inside, engines_[1].get()}) {
    const std::vector<base::LogNote> report = engine->take_report();
    ASSERT_EQ(report.size(), 1u);
    EXPECT_EQ(report[0].level, LogLevel::warning);
    EXPECT_THAT(report[0].text, testing::HasSubstr(engine::Engine::kNat));
  }
  EXPECT_THAT(inside.describe_peer(host_number(1), now_), testing::HasSubstr(engine::Engine::kNat));
}

TEST_F(FlightLogTest, ReportsThatNobodyTakesStayBounded) {
  link::Link link({}, 1, 1);
  FlightLog log(link, 16);
  const auto peer = link.peer(host_number(1), 1400, {});
  ASSERT_TRUE(peer);
  for (int i = 0; i < 10'000; ++i) log.lost(*peer, Status::silent, now_, [] { return std::string("it fell silent"); });
  const std::string report = text_of(log.take_report());
  EXPECT_LE(report.size(), 64u * 1024);
  EXPECT_TRUE(report.ends_with("fits into one report)\n"));
  EXPECT_FALSE(log.has_report());
}

}  // namespace
}  // namespace fairlead::transport
