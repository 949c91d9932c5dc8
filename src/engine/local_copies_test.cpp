// What is long and goes from port to port in one engine: no turn copies more than it may, and each end may go
// meanwhile.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "engine/engine.hpp"
#include "path/sim_network.hpp"

namespace fairlead::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLocalTurn = LocalCopies::kBytesInTurn, kLocalPage = 4096,
                        kLocalLong = 2 * kLocalTurn + kLocalPage;
constexpr std::byte kLocalFrom{0x5A};

class LongLocalCopy : public ::testing::Test {
 protected:
  LongLocalCopy() {
    const auto at = *base::SocketAddress::from_ip("10.0.0.1", 20480);
    engine_ = std::make_unique<Engine>(*network_.attach(at), at, EngineOptions(), 99, 7);
    for (std::uint32_t i = 0; i < 2; ++i) {
      ports_[i] = *engine_->ports().open(i + 1);
      EXPECT_EQ(engine_->ports().find(ports_[i])->events->reserve(100), Status::ok);
    }
  }
  RemotePort there() const { return {engine_->address(), 2}; }
  Messages& messages() { return engine_->messages(); }
  std::vector<Completion> events(std::uint32_t port) {
    std::vector<Completion> all;
    while (const Completion* event = engine_->ports().find(ports_[port])->events->consume()) all.push_back(*event);
    return all;
  }
  void post_receive() {
    ASSERT_EQ(messages().post_receive(ports_[1], {.memory = {&to_piece_, 1}, .size_min = 1, .messages_max = 1}, other_),
              Status::ok);
  }
  void send() {
    ASSERT_EQ(messages().send(ports_[0], {.to = there(), .part = {{&from_piece_, 1}, kLocalLong, 3}}, own_, now_),
              Status::ok);
  }
  void transfer(OperationKind kind) {
    const bool is_put = kind == OperationKind::put;
    std::uint64_t key = 0;
    ASSERT_EQ(
        messages().expose(
            ports_[1], {.memory = {is_put ? &to_piece_ : &from_piece_, 1}, .length = kLocalLong, .is_writable = is_put},
            other_, key),
        Status::ok);
    ASSERT_EQ(messages().transfer(ports_[0], kind,
                                  {.target = there(),
                                   .target_epoch = 99,
                                   .key = key,
                                   .memory = {is_put ? &from_piece_ : &to_piece_, 1},
                                   .length = kLocalLong,
                                   .cookie = 3},
                                  own_, now_),
              Status::ok);
  }
  /// By the last bytes of pages.
  static std::uint64_t count(const std::vector<std::byte>& bytes) {
    std::uint64_t found = 0;
    for (std::size_t page = 0; page < kLocalLong; page += kLocalPage)
      found += bytes[page + kLocalPage - 1] == kLocalFrom ? kLocalPage : 0;
    return found;
  }
  std::uint64_t copied() const { return count(to_); }
  void expect_turns() {
    std::uint64_t before = copied();
    EXPECT_LE(before, kLocalTurn);
    for (int turns = 0; before != kLocalLong && turns < 100; ++turns) {
      EXPECT_TRUE(events(0).empty() && events(1).empty());
      EXPECT_EQ(engine_->next_deadline(), base::Instant{}) << "nobody sleeps over it";
      engine_->progress(now_);
      const std::uint64_t now = copied();
      EXPECT_LE(now - before, kLocalTurn);
      EXPECT_GT(now, before);
      before = now;
    }
    EXPECT_EQ(before, kLocalLong);
    for (const std::uint32_t port : {0U, 1U}) {
      const auto ends = events(port);
      ASSERT_EQ(ends.size(), 1U);
      EXPECT_EQ(ends[0].status, Status::ok);
      EXPECT_EQ(ends[0].length, kLocalLong);
    }
    expect_nothing_left();
  }
  void expect_nothing_left() {
    EXPECT_EQ(messages().use().operations, 0U);
    EXPECT_EQ(messages().use().placements, 0U);
    EXPECT_FALSE(messages().is_copying());
  }

  path::SimNetwork network_{1};
  base::Instant now_{1s};
  std::unique_ptr<Engine> engine_;
  PortHandle ports_[2];
  std::vector<std::byte> from_ = std::vector(kLocalLong, kLocalFrom), to_ = std::vector<std::byte>(kLocalLong);
  iovec from_piece_{from_.data(), kLocalLong}, to_piece_{to_.data(), kLocalLong};
  OperationHandle own_, other_;
};

TEST_F(LongLocalCopy, AMessageTakesTurns) {
  post_receive();
  send();
  expect_turns();
}

TEST_F(LongLocalCopy, APutAndAGetTakeTurns) {
  transfer(OperationKind::put);
  expect_turns();
  std::memset(to_.data(), 0, to_.size());
  transfer(OperationKind::get);
  expect_turns();
}

TEST_F(LongLocalCopy, EndsAtBothEndsWhenItIsCancelled) {
  post_receive();
  send();
  engine_->progress(now_);
  ASSERT_TRUE(messages().cancel(ports_[0], own_, now_));
  for (const std::uint32_t port : {0U, 1U}) EXPECT_NE(events(port).at(0).status, Status::ok);
  transfer(OperationKind::put);
  engine_->progress(now_);
  ASSERT_TRUE(messages().cancel(ports_[0], own_, now_));
  for (const std::uint32_t port : {0U, 1U}) EXPECT_EQ(events(port).at(0).status, Status::canceled);
  const std::uint64_t before = copied();
  engine_->progress(now_);
  EXPECT_EQ(copied(), before);
  expect_nothing_left();
}

// Its owner has cancelled it, and the time for what had begun is over.
TEST_F(LongLocalCopy, WritesNothingMoreWhereNobodyIs) {
  const auto force = [&] {
    messages().cancel(ports_[1], other_, now_);
    messages().grant_patience(ports_[1], other_, now_);
    now_ += 1h;
    messages().expire(now_);
  };
  post_receive();
  send();
  force();
  EXPECT_EQ(events(1).at(0).status, Status::canceled);
  const std::uint64_t before = copied();
  engine_->progress(now_);
  EXPECT_EQ(copied(), before);
  EXPECT_EQ(events(0).at(0).status, Status::no_buffer);
  expect_nothing_left();
  transfer(OperationKind::put);
  force();
  EXPECT_EQ(events(1).at(0).status, Status::canceled);
  engine_->progress(now_);
  EXPECT_EQ(events(0).at(0).status, Status::stale);
  expect_nothing_left();
}

TEST_F(LongLocalCopy, SharesItsTurnsWithOthers) {
  std::vector<std::byte> second(kLocalLong);
  const iovec piece{second.data(), kLocalLong};
  post_receive();
  ASSERT_EQ(messages().post_receive(ports_[1], {.memory = {&piece, 1}, .size_min = 1, .messages_max = 1}, other_),
            Status::ok);
  send();
  send();
  for (int i = 0; i < 2; ++i) engine_->progress(now_);
  EXPECT_EQ(copied(), kLocalTurn);
  EXPECT_EQ(count(second), kLocalTurn);
  for (int i = 0; i < 10; ++i) engine_->progress(now_);
  EXPECT_EQ(events(0).size(), 2U);
  expect_nothing_left();
}

}  // namespace
}  // namespace fairlead::engine
