// Peers give way to others (docs/link.md, "Places"), and the engine drops its state about them, too. On virtual time.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "path/sim_network.hpp"

namespace fairlead::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kPortOfAll = 34U << 12 | 7U;

class ManyEngines : public ::testing::Test {
 protected:
  struct Side {
    std::unique_ptr<Engine> engine;
    PortHandle port;
    std::array<std::byte, 64> buffer{};
    iovec piece{buffer.data(), buffer.size()};
  };

  void start(std::size_t count, std::uint64_t peers_max) {
    EngineOptions options;
    ASSERT_TRUE(options.set(Option::peers_max, peers_max));
    sides_ = std::vector<Side>(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto address = *base::SocketAddress::from_ip("10.0.1." + std::to_string(i + 1), 20480);
      sides_[i].engine = std::make_unique<Engine>(*network_.attach(address), address, options, i + 1, i + 99);
      sides_[i].port = *sides_[i].engine->ports().open(kPortOfAll);
      ASSERT_EQ(sides_[i].engine->ports().find(sides_[i].port)->events->reserve(100), Status::ok);
    }
  }

  void run(base::Duration span) {
    const base::Instant end = now_ + span;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      bool any = false;
      base::Instant next = network_.next_event();
      for (Side& side : sides_) {
        any |= side.engine->progress(now_);
        next = std::min(next, side.engine->next_deadline());
      }
      if (any) continue;
      if (next > end) break;
      now_ = std::max(next, now_ + 1ns);
      network_.advance(now_);
    }
    now_ = std::max(now_, end);
    network_.advance(now_);
  }

  std::vector<Status> ends(Side& side) {
    std::vector<Status> all;
    while (const Completion* event = side.engine->ports().find(side.port)->events->consume())
      all.push_back(event->status);
    return all;
  }

  /// Sends a message. Returns whether it was received and acknowledged.
  bool can_send(std::size_t from, std::size_t to) {
    Side &sender = sides_[from], &receiver = sides_[to];
    OperationHandle name;
    EXPECT_EQ(
        receiver.engine->messages().post_receive(receiver.port, {.memory = {&receiver.piece, 1}, .size_min = 1}, name),
        Status::ok);
    const Status status = sender.engine->messages().send(
        sender.port, {.to = {receiver.engine->address(), kPortOfAll}, .part = {{&sender.piece, 1}, 64}}, name, now_);
    if (status != Status::ok) return false;
    run(10ms);
    return ends(sender) == std::vector{Status::ok} && ends(receiver) == std::vector{Status::ok};
  }

  path::SimNetwork network_{1};
  std::vector<Side> sides_;
  base::Instant now_{1000s};
};

TEST_F(ManyEngines, WhoGivesWayComesBackWithoutALoss) {
  constexpr std::size_t kCount = 60;
  start(kCount, 32);
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 1; i < kCount; ++i) {
      ASSERT_TRUE(can_send(i, 0)) << i;
      ASSERT_TRUE(can_send(0, i)) << i;
      run(1s);
    }
  }
  const Engine& met = *sides_[0].engine;
  EXPECT_LE(met.link()->peer_count(), 32U);
  EXPECT_GE(met.link()->counters().peers_forgotten, 100U);
  for (const Side& side : sides_) {
    EXPECT_EQ(side.engine->link()->counters().sessions_lost, 0U);
    EXPECT_FALSE(side.engine->has_report());
    EXPECT_EQ(side.engine->active().losses().count(), 0U);
  }
}

TEST_F(ManyEngines, ThePeerAskedForLastMayBeForgottenToo) {
  start(40, 16);
  ASSERT_TRUE(can_send(0, 1));
  run(6s);
  for (std::size_t i = 2; i < 40; ++i) {  // others send to engine 0, which sends nothing
    ASSERT_TRUE(can_send(i, 0)) << i;
    run(500ms);
  }
  EXPECT_FALSE(sides_[0].engine->link()->find(sides_[1].engine->address()));
  EXPECT_TRUE(can_send(0, 1));
}

}  // namespace
}  // namespace fairlead::engine
