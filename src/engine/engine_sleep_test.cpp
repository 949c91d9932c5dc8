// When an engine may sleep that has exchanged messages with a peer of its host.

#include <array>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

using EngineSleep = EnginePair;

constexpr base::Duration kGiveUpAfter = 5s;  // the default

// The peer reads the message between the last pass and arm(). Its progress completes the message, so arm() fails.
TEST_F(EngineSleep, TheEndOfAMessageIsNews) {
  std::array<std::byte, 64> bytes{}, room{};
  const iovec from{bytes.data(), bytes.size()}, to{room.data(), room.size()};
  OperationHandle operation;
  ASSERT_EQ(far_.engine->messages().post_receive(far_.port, {.memory = {&to, 1}, .size_min = 1}, operation),
            Status::ok);
  ASSERT_EQ(
      near_.engine->messages().send(
          near_.port, {.to = {far_.engine->address(), kPort}, .part = {{&from, 1}, bytes.size()}}, operation, now_),
      Status::ok);
  pass();                           // near finds nothing; then far takes the message ...
  ASSERT_TRUE(far_.engine->arm());  // ... and reports its progress before it sleeps
  ASSERT_FALSE(near_.event().has_value());
  EXPECT_FALSE(near_.engine->arm());
  near_.engine->progress(now_);
  EXPECT_TRUE(near_.event().has_value());
}

// A buffer that is cancelled while a message arrives in it sets a timer. The timer goes when the buffer has ended.
TEST_F(EngineSleep, WhatWasCancelledAndHasEndedWakesNobody) {
  std::vector<std::byte> bytes(200'000), room(200'000);
  const iovec from{bytes.data(), bytes.size()}, to{room.data(), room.size()};
  OperationHandle operation, receive;
  ASSERT_EQ(near_.engine->messages().post_receive(near_.port, {.memory = {&to, 1}, .size_min = 1}, receive),
            Status::ok);
  ASSERT_EQ(
      far_.engine->messages().send(
          far_.port, {.to = {near_.engine->address(), kPort}, .part = {{&from, 1}, bytes.size()}}, operation, now_),
      Status::ok);
  while (near_.engine->use().placements == 0) pass();
  ASSERT_TRUE(near_.engine->cancel(near_.port, receive, now_));
  EXPECT_LT(near_.engine->next_deadline(), now_ + kGiveUpAfter / 8);
  ASSERT_TRUE(next(near_).has_value());
  ASSERT_TRUE(next(far_).has_value());
  now_ += 1s;  // enough for the transport's next check of the peer's progress
  pass();
  EXPECT_GT(near_.engine->next_deadline(), now_ + 2 * kGiveUpAfter);
}

}  // namespace
}  // namespace fairlead::engine
