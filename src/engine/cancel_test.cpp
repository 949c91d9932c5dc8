// Operations that are cancelled while the peer does not run end at once, and the caller owns their memory again. Later
// the peer receives each message completely or not at all.

#include <deque>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

constexpr std::size_t kCancelledAtOnce = 40;
constexpr std::size_t kCancelledMost = 200'000;

std::byte pattern_at(std::uint64_t cookie, std::size_t index) {
  return static_cast<std::byte>(cookie * 131 + index * 7 + (index >> 8));
}

template <bool kIsForeign>
class CancelOf : public EnginePair {
 protected:
  CancelOf() : EnginePair(kIsForeign) {}

  RemotePort there() const { return {far_.engine->address(), kPort}; }
  std::span<std::byte> memory(std::size_t bytes, bool is_shared) {
    if (is_shared) return near_.shared(bytes);
    return kept_.emplace_back(bytes);
  }
  void post(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      rooms_.emplace_back(kCancelledMost);
      pieces_.push_back({rooms_.back().data(), kCancelledMost});
      OperationHandle receive;
      ASSERT_EQ(far_.engine->messages().post_receive(
                    far_.port, {.memory = {&pieces_.back(), 1}, .size_min = 1, .cookie = rooms_.size() - 1}, receive),
                Status::ok);
    }
  }
  OperationHandle send(std::span<std::byte> bytes, std::uint64_t cookie) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_at(cookie, i);
    pieces_.push_back({bytes.data(), bytes.size()});
    OperationHandle operation;
    EXPECT_EQ(near_.engine->messages().send(
                  near_.port, {.to = there(), .part = {{&pieces_.back(), 1}, bytes.size(), cookie}}, operation, now_),
              Status::ok);
    return operation;
  }
  /// Checks the contents of complete messages, and returns their number.
  std::size_t take_arrivals() {
    std::size_t count = 0;
    while (const auto event = far_.event()) {
      if (event->status != Status::ok) {
        EXPECT_EQ(event->status, Status::refused);
        continue;
      }
      ++count;
      const auto& room = rooms_[event->cookie];
      const auto cookie = static_cast<std::uint64_t>(event->length);  // each message has a different length
      for (std::size_t i = 0; i < event->length; ++i)
        if (room[i] != pattern_at(cookie, i)) return ADD_FAILURE() << "byte " << i << " of " << cookie, count;
    }
    return count;
  }
  /// Sends many messages, cancels them while far does not run, and overwrites them. Then far runs again.
  std::size_t cancel_all(std::size_t bytes, bool is_shared, int passes) {
    std::vector<std::pair<std::span<std::byte>, OperationHandle>> sent;
    post(kCancelledAtOnce + 1);
    for (std::size_t i = 0; i < kCancelledAtOnce; ++i) {
      const auto memory = this->memory(bytes + i, is_shared);
      sent.emplace_back(memory, send(memory, bytes + i));
    }
    for (int i = 0; i < passes; ++i) pass(i == passes / 2);
    std::size_t ended = 0;
    while (near_.event()) ++ended;  // before the cancellation
    for (const auto& [memory, operation] : sent) {
      near_.engine->cancel(near_.port, operation, now_);
      for (std::byte& byte : memory) byte = std::byte{0xdb};
    }
    std::size_t canceled = 0;
    while (const auto event = near_.event()) {
      EXPECT_TRUE(event->is_final);
      ++(event->status == Status::canceled ? canceled : ended);  // the peer had read it
    }
    EXPECT_EQ(ended + canceled, kCancelledAtOnce) << "at once";
    EXPECT_EQ(near_.engine->use().operations, 0U);
    EXPECT_EQ(near_.engine->ports().find(near_.port)->operations, 0U);
    for (int i = 0; i < 2000; ++i) pass();
    const std::size_t arrived = take_arrivals();
    EXPECT_GE(arrived, ended);
    const auto last = memory(100'001, false);
    send(last, last.size());
    const auto event = next(near_);
    EXPECT_TRUE(event && event->status == Status::ok) << "what is behind them goes on";
    for (int i = 0; i < 100; ++i) pass();
    EXPECT_EQ(take_arrivals(), 1U);
    EXPECT_EQ(far_.engine->use().placements, 0U);
    near_.engine->check();
    far_.engine->check();
    return arrived;
  }

 private:
  std::deque<std::vector<std::byte>> kept_, rooms_;
  std::deque<iovec> pieces_;
};

using EngineCancel = CancelOf<false>;
using EngineCancelOfPulled = CancelOf<true>;

TEST_F(EngineCancel, ShortMessagesInTheRing) {
  EXPECT_EQ(cancel_all(8, false, 1), kCancelledAtOnce) << "they are the peer's already";
}

TEST_F(EngineCancel, ShortMessagesThatWaitForRoom) {
  EXPECT_LT(cancel_all(7000, false, 1), kCancelledAtOnce);
}

TEST_F(EngineCancel, LongMessages) {
  EXPECT_LT(cancel_all(100'000, false, 1), kCancelledAtOnce);
  EXPECT_LT(cancel_all(100'000, false, 5), kCancelledAtOnce);
}

TEST_F(EngineCancelOfPulled, MessagesThatAreReadWhereTheyLie) {
  EXPECT_EQ(cancel_all(100'000, true, 0), 0U);
}

TEST_F(EngineCancel, ThePutOfWhichHalfIsThere) {
  std::vector<std::byte> room(kCancelledMost), bytes(kCancelledMost);
  const iovec to{room.data(), room.size()}, from{bytes.data(), bytes.size()};
  OperationHandle exposure, put;
  std::uint64_t key = 0;
  ASSERT_EQ(
      far_.engine->messages().expose(
          far_.port, {.memory = {&to, 1}, .length = kCancelledMost, .is_writable = true, .cookie = 1}, exposure, key),
      Status::ok);
  ASSERT_EQ(near_.engine->messages().transfer(near_.port, OperationKind::put,
                                              {.target = there(),
                                               .target_epoch = far_.engine->epoch(),
                                               .key = key,
                                               .memory = {&from, 1},
                                               .length = kCancelledMost,
                                               .cookie = 2},
                                              put, now_),
            Status::ok);
  while (far_.engine->use().placements == 0) pass();
  ASSERT_TRUE(near_.engine->cancel(near_.port, put, now_));
  const auto end = near_.event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::canceled);
  const auto told = next(far_);
  ASSERT_TRUE(told) << "its target hears of it";
  EXPECT_EQ(told->status, Status::refused);
  EXPECT_EQ(far_.engine->use().placements, 0U);
}

TEST_F(EngineCancel, TheGetThatIsBeingAnswered) {
  std::vector<std::byte> room(kCancelledMost), bytes(kCancelledMost);
  const iovec to{room.data(), room.size()}, from{bytes.data(), bytes.size()};
  OperationHandle exposure, get;
  std::uint64_t key = 0;
  const auto begin = [&] {
    ASSERT_EQ(far_.engine->messages().expose(far_.port, {.memory = {&from, 1}, .length = kCancelledMost, .cookie = 1},
                                             exposure, key),
              Status::ok);
    ASSERT_EQ(near_.engine->messages().transfer(near_.port, OperationKind::get,
                                                {.target = there(),
                                                 .target_epoch = far_.engine->epoch(),
                                                 .key = key,
                                                 .memory = {&to, 1},
                                                 .length = kCancelledMost,
                                                 .cookie = 2},
                                                get, now_),
              Status::ok);
    while (near_.engine->use().placements == 0) pass();
  };
  begin();
  ASSERT_TRUE(near_.engine->cancel(near_.port, get, now_));
  auto end = near_.event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::canceled);
  std::ranges::fill(room, std::byte{0xdb});
  ASSERT_TRUE(next(far_));
  for (int i = 0; i < 100; ++i) pass();
  EXPECT_TRUE(std::ranges::all_of(room, [](std::byte byte) { return byte == std::byte{0xdb}; })) << "nobody writes";

  begin();  // now the owner cancels, while the initiator does not run
  ASSERT_TRUE(far_.engine->cancel(far_.port, exposure, now_));
  for (int i = 0; i < 100; ++i) {
    now_ += 25us;
    far_.engine->progress(now_);
  }
  end = far_.event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::canceled);
  std::ranges::fill(bytes, std::byte{0xdb});
  end = next(near_);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->status == Status::refused || end->status == Status::stale);
}

}  // namespace
}  // namespace fairlead::engine
