// The buffer and offset that a message gets, and the order of events.

#include "engine/receives.hpp"

#include <deque>
#include <string>

#include "engine/message_context_for_tests.hpp"

namespace fairlead::engine {
namespace {

class ReceivesTest : public MessageContextTest {
 protected:
  OperationHandle post(std::size_t size, std::uint32_t messages_max, std::uint64_t size_min = 1) {
    std::string& buffer = buffers_.emplace_back(size, '.');
    const iovec& piece = pieces_.emplace_back(iovec{buffer.data(), size});
    OperationHandle operation;
    EXPECT_EQ(
        receives_.post(
            port_,
            {.memory = {&piece, 1}, .size_min = size_min, .messages_max = messages_max, .cookie = buffers_.size() - 1},
            operation),
        Status::ok);
    return operation;
  }
  void take(std::string_view text) { receives_.take(from_.engine, from_.port, kNumber, bytes(text), now_); }
  void expect_event(std::uint64_t buffer, std::uint64_t offset, std::string_view text, bool is_final) {
    const auto told = event();
    ASSERT_TRUE(told) << text;
    EXPECT_EQ(told->cookie, buffer) << text;
    EXPECT_EQ(told->offset, offset) << text;
    EXPECT_EQ(told->is_final, is_final) << text;
    EXPECT_EQ(told->source, from_);
    EXPECT_EQ(buffers_[buffer].substr(offset, told->length), text);
  }

  const RemotePort from_{own_, 3};
  std::deque<std::string> buffers_;
  std::deque<iovec> pieces_;
  Receives receives_{context_};
};

TEST_F(ReceivesTest, ABufferTakesMessagesUntilItHasHadItsNumber) {
  post(16, 2);
  post(16, 1);
  for (const char* text : {"one", "two", "three"}) take(text);
  expect_event(0, 0, "one", false);
  expect_event(0, 3, "two", true);
  expect_event(1, 0, "three", true);
  EXPECT_EQ(context_.operations.used(), 0u);
}

TEST_F(ReceivesTest, ABufferEndsWhenTooLittleIsLeft) {
  post(8, 100, 4);
  take("12345");
  expect_event(0, 0, "12345", true);
}

TEST_F(ReceivesTest, TheFirstWithRoomIsTaken) {
  post(4, 9);
  post(16, 9);
  take("too long");
  take("fits");
  expect_event(1, 0, "too long", false);
  expect_event(0, 0, "fits", true);
}

TEST_F(ReceivesTest, ABufferBehindTheFirstIsNotPreferredForHavingTakenTheLast) {
  post(4, 9);
  post(16, 9);
  take("too long");
  take("one");
  expect_event(1, 0, "too long", false);
  expect_event(0, 0, "one", false);
}

TEST_F(ReceivesTest, ACancelledBufferTakesNothingThoughItTookTheLast) {
  const OperationHandle first = post(16, 9);
  post(16, 9);
  take("one");
  context_.operations[first.slot].is_cancel_wanted = true;
  receives_.cancel(first.slot, now_);
  take("two");
  expect_event(0, 0, "one", false);
  EXPECT_EQ(event()->status, Status::canceled);
  expect_event(1, 0, "two", false);
}

TEST_F(ReceivesTest, WhatNobodyTakesIsCounted) {
  take("nobody");
  receives_.take(from_.engine, from_.port, kNumber + 1, bytes("no port"), now_);
  EXPECT_EQ(context_.counters.dropped_no_buffer, 1u);
  EXPECT_EQ(ports_.find(port_)->dropped_no_buffer, 1u);
  EXPECT_EQ(context_.counters.dropped_no_port, 1u);
  EXPECT_FALSE(event());
}

TEST_F(ReceivesTest, EventsGoOutInTheOrderOfOffsets) {
  post(32, 3);
  const auto match = receives_.match(kNumber, 5, true);
  const std::uint64_t offset = receives_.take_room(match, 5);
  const std::uint32_t placement = receives_.begin_placement(match.slot, offset, 5, from_);
  take("second");
  EXPECT_FALSE(event()) << "the first has not come yet";
  match.operation->permit(offset, 5).write(0, bytes("first"));
  receives_.end_placement(placement, Status::ok, now_);
  take("third");
  expect_event(0, 0, "first", false);
  expect_event(0, 5, "second", false);
  expect_event(0, 11, "third", true);
  EXPECT_EQ(context_.placements.used(), 0u);
}

TEST_F(ReceivesTest, AMessageWhoseSenderIsLostHasNoEvent) {
  post(32, 2);
  const auto match = receives_.match(kNumber, 5, true);
  const std::uint32_t placement = receives_.begin_placement(match.slot, receives_.take_room(match, 5), 5, from_);
  take("second");
  receives_.end_placement(placement, Status::silent, now_);
  expect_event(0, 5, "second", true);
  EXPECT_EQ(context_.counters.dropped_sender_lost, 1u);
}

TEST_F(ReceivesTest, CancelWaitsForWhatHasBegunToArrive) {
  const OperationHandle operation = post(32, 9);
  const auto match = receives_.match(kNumber, 5, true);
  const std::uint32_t placement = receives_.begin_placement(match.slot, receives_.take_room(match, 5), 5, from_);
  match.operation->is_cancel_wanted = true;
  receives_.cancel(operation.slot, now_);
  EXPECT_FALSE(event());
  receives_.abandon(match.slot, now_);
  const auto end = event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::canceled);
  EXPECT_EQ(context_.placements[placement].operation, 0u) << "further chunks find nobody";
}

TEST_F(ReceivesTest, ABufferInPiecesIsFilledAcrossThem) {
  std::string first(3, '.'), second(8, '.');
  const std::array<iovec, 2> pieces{{{first.data(), first.size()}, {second.data(), second.size()}}};
  OperationHandle operation;
  ASSERT_EQ(receives_.post(port_, {.memory = pieces, .size_min = 1, .cookie = 0}, operation), Status::ok);
  take("abcdef");
  EXPECT_EQ(first + second, "abcdef.....");
  EXPECT_TRUE(event());
}

}  // namespace
}  // namespace fairlead::engine
