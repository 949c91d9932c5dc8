// Two engines on virtual time over the simulated network: the guarantees of each operation, and refusals.

#include "engine/engine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "engine/two_engines_for_tests.hpp"

namespace fairlead::engine {
namespace {

using namespace std::chrono_literals;

TEST_F(TwoEngines, AMessageReachesThePostedBufferWithItsSender) {
  auto sent = pattern(100, 1);
  std::vector<std::byte> received(200);
  const iovec from = piece(sent), to = piece(received);
  OperationHandle name;
  ASSERT_EQ(b().engine->messages().post_receive(
                b().port, {.memory = {&to, 1}, .size_min = 100, .messages_max = 1, .cookie = 7}, name),
            Status::ok);
  ASSERT_EQ(a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from, 1}, 100, 8}}, name, now_),
            Status::ok);
  run(100ms);
  const auto at_b = b().events();
  ASSERT_EQ(at_b.size(), 1u);
  EXPECT_EQ(at_b[0].cookie, 7u);
  EXPECT_EQ(at_b[0].status, Status::ok);
  EXPECT_EQ(at_b[0].length, 100u);
  EXPECT_EQ(at_b[0].source, a().remote());
  EXPECT_TRUE(at_b[0].is_final);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), received.begin()));
  const auto at_a = a().events();
  ASSERT_EQ(at_a.size(), 1u);
  EXPECT_EQ(at_a[0].cookie, 8u);
  EXPECT_EQ(at_a[0].status, Status::ok);
  EXPECT_EQ(a().engine->ports().find(a().port)->operations, 0u);
  EXPECT_EQ(b().engine->ports().find(b().port)->operations, 0u);
}

TEST_F(TwoEngines, SeveralMessagesLieBehindOneAnotherAndTheLastEventIsFinal) {
  std::vector<std::byte> received(10'000);
  const iovec to = piece(received);
  OperationHandle name;
  ASSERT_EQ(b().engine->messages().post_receive(
                b().port, {.memory = {&to, 1}, .size_min = 1, .messages_max = 3, .cookie = 1}, name),
            Status::ok);
  std::array<std::vector<std::byte>, 3> sent{pattern(5000, 1), pattern(7, 2), pattern(3000, 3)};
  std::array<iovec, 3> from;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    from[i] = piece(sent[i]);
    ASSERT_EQ(a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from[i], 1}, sent[i].size(), i}},
                                          name, now_),
              Status::ok);
  }
  run(100ms);
  const auto events = b().events();
  ASSERT_EQ(events.size(), 3u);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].offset, offset) << "events come in the order of offsets, without a gap";
    EXPECT_EQ(events[i].is_final, i == 2);
    const auto which = std::ranges::find(sent, events[i].length, &std::vector<std::byte>::size);
    ASSERT_NE(which, sent.end());
    EXPECT_TRUE(std::equal(which->begin(), which->end(), received.begin() + static_cast<std::ptrdiff_t>(offset)));
    offset += events[i].length;
  }
}

TEST_F(TwoEngines, AMessageWithoutBufferIsDroppedAndCountedAndItsSendSucceeds) {
  auto sent = pattern(10, 1);
  const iovec from = piece(sent);
  OperationHandle name;
  a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from, 1}, 10, 8}}, name, now_);
  run(100ms);
  EXPECT_EQ(b().engine->ports().find(b().port)->dropped_no_buffer.load(), 1u);
  const auto events = a().events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status, Status::ok);
}

TEST_F(TwoEngines, MessagesThatWaitBehindAnUnfinishedOneAreBounded) {
  ASSERT_TRUE(options_.set(Option::operations_max, 16));
  start(1, 102);
  std::vector<std::byte> received(6'000'000);
  const iovec to = piece(received);
  OperationHandle name;
  ASSERT_EQ(b().engine->messages().post_receive(
                b().port, {.memory = {&to, 1}, .size_min = 1, .messages_max = 100, .cookie = 1}, name),
            Status::ok);
  auto large = pattern(5'000'000, 1), small = pattern(10, 2);
  const iovec from_large = piece(large), from_small = piece(small);
  a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from_large, 1}, large.size()}}, name, now_);
  for (int i = 0; i < 100 && b().engine->use().placements == 0; ++i) run(5us);
  for (int i = 0; i < 40; ++i) {
    a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from_small, 1}, small.size()}}, name, now_);
  }
  run(5s);
  const auto dropped = b().engine->ports().find(b().port)->dropped_no_buffer.load();
  EXPECT_GT(dropped, 0u) << "the small ones did not overtake: this test shows nothing";
  EXPECT_EQ(b().events().size() + dropped, 41u);
}

TEST_F(TwoEngines, ACancelEndsInTimeThoughASlowMessageGoesOn) {
  std::vector<std::byte> received(60'000'000);
  const iovec to = piece(received);
  OperationHandle receive, name;
  ASSERT_EQ(b().engine->messages().post_receive(
                b().port, {.memory = {&to, 1}, .size_min = 1, .messages_max = 9, .cookie = 1}, receive),
            Status::ok);
  auto sent = pattern(50'000'000, 1);
  const iovec from = piece(sent);
  a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from, 1}, sent.size(), 8}}, name, now_);
  for (int i = 0; i < 100 && b().engine->use().placements == 0; ++i) run(5us);
  ASSERT_EQ(b().engine->use().placements, 1U);
  const auto slow = std::move(a().engine);  // from now on it makes one pass per second
  const auto go_on = [&](int seconds) {
    for (int i = 0; i < seconds * 10; ++i) {
      if (i % 10 == 0) slow->progress(now_);
      run(100ms);
    }
  };
  ASSERT_TRUE(b().engine->cancel(b().port, receive, now_));
  EXPECT_TRUE(b().events().empty()) << "it has a moment to go on";
  run(1ms);
  const auto events = b().events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].status, Status::canceled);
  EXPECT_TRUE(events[0].is_final);
  EXPECT_EQ(b().engine->ports().find(b().port)->operations, 0U);
  std::ranges::fill(received, std::byte{0});  // the memory belongs to the caller again
  go_on(6);
  EXPECT_TRUE(std::ranges::all_of(received, [](std::byte byte) { return byte == std::byte{0}; }));
  run(10s);
  EXPECT_EQ(b().engine->use().placements, 0U);
}

TEST_F(TwoEngines, AMessageTooLongForTheFirstBufferTakesTheNext) {
  std::vector<std::byte> small(10), large(100);
  const iovec to_small = piece(small), to_large = piece(large);
  OperationHandle name;
  b().engine->messages().post_receive(b().port,
                                      {.memory = {&to_small, 1}, .size_min = 1, .messages_max = 1, .cookie = 1}, name);
  b().engine->messages().post_receive(b().port,
                                      {.memory = {&to_large, 1}, .size_min = 1, .messages_max = 1, .cookie = 2}, name);
  auto sent = pattern(50, 1);
  const iovec from = piece(sent);
  a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from, 1}, 50, 8}}, name, now_);
  run(100ms);
  const auto events = b().events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].cookie, 2u);
}

TEST_F(TwoEngines, APeerThatIsNotThereEndsEachSendWithItsCause) {
  b().engine.reset();
  auto sent = pattern(10, 1);
  const iovec from = piece(sent);
  OperationHandle name;
  const RemotePort nobody{host(9), 1};  // the network reports that no such host exists
  ASSERT_EQ(a().engine->messages().send(a().port, {.to = nobody, .part = {{&from, 1}, 10, 8}}, name, now_), Status::ok);
  run(30s);
  const auto events = a().events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status, Status::refused);
  const std::string text = a().engine->describe_peer(host(9), now_);
  EXPECT_NE(text.find("10.0.0.9:20480"), std::string::npos) << text;
}

TEST_F(TwoEngines, ShortMessagesToAPortThatNobodyHasAreRefused) {
  auto sent = pattern(10, 1);
  const iovec from = piece(sent);
  OperationHandle name;
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(a().engine->messages().send(a().port, {.to = {host(1), 77}, .part = {{&from, 1}, 10, i}}, name, now_),
              Status::ok);
  EXPECT_EQ(a().engine->messages().use().operations, 0U) << "they are copied";
  EXPECT_EQ(a().engine->use().operations, 5U);
  a().engine->check();
  run(100ms);
  const auto events = a().events();
  ASSERT_EQ(events.size(), 5u);
  for (const Completion& event : events) EXPECT_EQ(event.status, Status::refused);
  a().engine->check();
}

TEST_F(TwoEngines, ShortMessagesOfAPortThatIsClosedEndAtOnce) {
  auto sent = pattern(10, 1);
  const iovec from = piece(sent);
  OperationHandle name;
  for (std::uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from, 1}, 10, i}}, name, now_),
              Status::ok);
    if (i == 0) run(100ms);
    if (i == 20) a().engine->progress(now_);  // later messages wait for the next pass
  }
  EXPECT_EQ(a().events().size(), 1u);
  EXPECT_TRUE(a().engine->cancel(a().port, name, now_));
  EXPECT_FALSE(a().engine->cancel(a().port, name, now_));
  EXPECT_EQ(a().events().size(), 1u);
  a().engine->check();
  a().engine->cancel_all(a().port, now_);
  EXPECT_EQ(a().engine->ports().find(a().port)->operations, 0u);
  for (const Completion& event : a().events()) EXPECT_EQ(event.status, Status::canceled);
  a().engine->free_port(a().port);
  run(100ms);
  a().engine->check();
}

TEST_F(TwoEngines, ACancelledReceiveTellsItsMessagesFirst) {
  std::vector<std::byte> received(100);
  const iovec to = piece(received);
  OperationHandle receive, name;
  b().engine->messages().post_receive(b().port, {.memory = {&to, 1}, .size_min = 1, .messages_max = 5, .cookie = 1},
                                      receive);
  auto sent = pattern(10, 1);
  const iovec from = piece(sent);
  a().engine->messages().send(a().port, {.to = b().remote(), .part = {{&from, 1}, 10, 8}}, name, now_);
  run(100ms);
  EXPECT_TRUE(b().engine->cancel(b().port, receive, now_));
  const auto events = b().events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].status, Status::ok);
  EXPECT_FALSE(events[0].is_final);
  EXPECT_EQ(events[1].status, Status::canceled);
  EXPECT_TRUE(events[1].is_final);
}

TEST_F(TwoEngines, ARefusedSubmissionLeavesNothingBehind) {
  std::vector<std::byte> memory(10);
  const iovec to = piece(memory);
  OperationHandle name;
  Engine& engine = *a().engine;
  EXPECT_EQ(engine.messages().post_receive(a().port, {.memory = {&to, 1}, .size_min = 0}, name), Status::invalid);
  EXPECT_EQ(engine.messages().post_receive(a().port, {.memory = {&to, 1}, .size_min = 11}, name), Status::invalid);
  EXPECT_EQ(engine.messages().post_receive(a().port, {.memory = {&to, 1}, .size_min = 1, .messages_max = 0}, name),
            Status::invalid);
  EXPECT_EQ(engine.messages().send(a().port, {.to = b().remote(), .part = {{&to, 1}, 11}}, name, now_),
            Status::invalid);
  EXPECT_EQ(engine.messages().send({}, {.to = b().remote(), .part = {{&to, 1}, 1}}, name, now_), Status::stale);
  EXPECT_EQ(engine.messages().send(a().port, {.to = {}, .part = {{&to, 1}, 1}}, name, now_), Status::unreachable);
  EXPECT_EQ(engine.ports().find(a().port)->operations, 0u);
  EXPECT_TRUE(a().events().empty());
}

TEST_F(TwoEngines, PortNumbersAreUniqueAndDynamicOnesCountDown) {
  Engine& engine = *a().engine;
  EXPECT_EQ(engine.ports().open(a().number).error().status, Status::in_use);
  std::uint32_t number = 0;
  const auto first = engine.ports().open_dynamic(10, 3, number);
  ASSERT_TRUE(first);
  EXPECT_EQ(number, 12u);
  ASSERT_TRUE(engine.ports().open_dynamic(10, 3, number));
  EXPECT_EQ(number, 11u);
  engine.free_port(*first);
  ASSERT_TRUE(engine.ports().open_dynamic(10, 3, number));
  EXPECT_EQ(number, 12u) << "what was given back is given again";
  ASSERT_TRUE(engine.ports().open_dynamic(10, 3, number));
  EXPECT_EQ(engine.ports().open_dynamic(10, 3, number).error().status, Status::not_available);
}

class Lossy : public TwoEngines, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  Lossy() : TwoEngines(GetParam()) {
    network_.set_default_link({.loss = 0.05, .duplication = 0.02, .reordering = 0.05, .corruption = 0.01});
  }
};

}  // namespace
}  // namespace fairlead::engine
