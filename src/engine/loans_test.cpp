// Messages by reference: reading in place, return to the sender, and sender or reader that lie or end.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

class EngineLoan : public EnginePair {
 protected:
  OperationHandle lend(DirectSide& from, std::uint16_t to, std::span<std::byte> memory) {
    pieces_.push_back({memory.data(), memory.size()});
    OperationHandle operation;
    EXPECT_EQ(from.engine->messages().send(
                  from.port,
                  {.to = {direct_place(to), kPort}, .part = {{&pieces_.back(), 1}, memory.size(), 5}, .is_loan = true},
                  operation, now_),
              Status::ok);
    return operation;
  }
  void receive(DirectSide& side, std::span<std::byte> memory, bool takes_loans, std::uint32_t messages = 1) {
    pieces_.push_back({memory.data(), memory.size()});
    OperationHandle operation;
    EXPECT_EQ(side.engine->messages().post_receive(side.port,
                                                   {.memory = {&pieces_.back(), 1},
                                                    .size_min = 1,
                                                    .messages_max = messages,
                                                    .takes_loans = takes_loans,
                                                    .cookie = 6},
                                                   operation),
              Status::ok);
  }
  static std::span<std::byte> filled(std::span<std::byte> bytes, int seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 13 + seed * 7ULL) >> 2);
    return bytes;
  }
  static bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

  std::deque<iovec> pieces_;
};

TEST_F(EngineLoan, IsReadWhereItLiesAndComesBack) {
  const auto there = filled(near_.shared(70'000), 1);
  std::vector<std::byte> buffer(70'000, std::byte{0xEE});
  receive(far_, buffer, true, 2);
  for (const bool is_last : {false, true}) {
    lend(near_, 2, there);
    const auto event = next(far_);
    ASSERT_TRUE(event && event->is_loan);
    EXPECT_EQ(event->is_final, is_last);
    EXPECT_EQ(event->length, there.size());
    EXPECT_EQ(event->source, (RemotePort{direct_place(1), kPort}));
    const LoanView loan = far_.engine->messages().loan(event->offset);
    EXPECT_TRUE(are_equal(loan.bytes, there));
    there[3] = std::byte{0x99};
    EXPECT_EQ(loan.bytes[3], std::byte{0x99}) << "in place";
    EXPECT_EQ(buffer[0], std::byte{0xEE});
    for (int step = 0; step < 50; ++step) pass();
    EXPECT_FALSE(near_.event()) << "it is being read";
    far_.engine->messages().give_back(far_.port, event->offset, now_);
    far_.engine->messages().give_back(far_.port, event->offset, now_);
    const auto end = next(near_);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->status, Status::ok);
    EXPECT_EQ(end->cookie, 5u);
    EXPECT_EQ(end->length, there.size());
  }
  EXPECT_EQ(near_.engine->use().operations + far_.engine->use().operations, 0u);
}

TEST_F(EngineLoan, IsCopiedForWhoTakesNone) {
  const auto there = filled(near_.shared(30'000), 2);
  std::vector<std::byte> buffer(100'000), own(30'000);
  receive(far_, buffer, false, 3);
  for (std::uint64_t i = 0; i < 2; ++i) {
    lend(near_, 2, there);
    const auto event = next(far_);
    ASSERT_TRUE(event && !event->is_loan);
    EXPECT_EQ(event->offset, i * 30'000);
    EXPECT_TRUE(are_equal(std::span(buffer).subspan(event->offset, event->length), there));
    EXPECT_EQ(next(near_)->status, Status::ok);
  }
  filled(own, 3);
  lend(near_, 2, own);
  EXPECT_EQ(next(far_)->offset, 60'000u) << "memory that nobody else reaches is sent";
  EXPECT_TRUE(are_equal(std::span(buffer).subspan(60'000, 30'000), own));
  EXPECT_EQ(next(near_)->status, Status::ok);
  EXPECT_EQ(near_.counter("engine.loan.sent"), 2u);
  lend(near_, 2, there);
  EXPECT_EQ(next(near_)->status, Status::ok) << "nobody takes it";
  EXPECT_EQ(far_.engine->ports().find(far_.port)->dropped_no_buffer.load(), 1u);
}

class EngineLoanGivenUp : public EngineLoan, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(, EngineLoanGivenUp, testing::Bool());

// The parameter: whether the reader takes loans. The lender has its memory back, and writes to it.
TEST_P(EngineLoanGivenUp, IsNotDelivered) {
  const auto there = near_.shared(5000);
  std::vector<std::byte> buffer(5000);
  receive(far_, buffer, GetParam());
  lend(near_, 2, there);
  for (int step = 0; step < 100; ++step) {
    now_ += 100ms;
    near_.engine->progress(now_);
  }
  const auto end = near_.event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::silent);
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(far_.event());
  EXPECT_EQ(far_.counter("engine.loan.given_up"), 1U);
}

// An engine that ends waits until its peers have read its last messages, but not for those that were cancelled.
TEST_F(EngineLoan, ThatWasCancelledHoldsNoEngineUp) {
  const auto there = near_.shared(5000);
  const OperationHandle lent = lend(near_, 2, there);
  OperationHandle confirmed;
  pieces_.push_back({there.data(), 64});
  ASSERT_EQ(
      near_.engine->messages().send(
          near_.port, {.to = {direct_place(2), kPort}, .part = {{&pieces_.back(), 1}, 64, 7}, .is_confirmed = true},
          confirmed, now_),
      Status::ok);
  EXPECT_TRUE(near_.engine->is_owing());
  EXPECT_TRUE(near_.engine->cancel(near_.port, lent, now_));
  EXPECT_TRUE(near_.engine->is_owing());
  EXPECT_TRUE(near_.engine->cancel(near_.port, confirmed, now_));
  near_.engine->progress(now_);
  EXPECT_FALSE(near_.engine->is_owing());
  for (const std::uint64_t cookie : {5, 7}) {
    const auto end = near_.event();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->cookie, cookie);
    EXPECT_EQ(end->status, Status::canceled);
  }
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(near_.event()) << "a second end";
}

TEST_F(EngineLoan, OutlivesWhoLentIt) {
  const auto there = filled(near_.shared(5000), 4);
  const std::vector<std::byte> copy(there.begin(), there.end());
  std::vector<std::byte> buffer(10'000);
  receive(far_, buffer, true, 9);
  lend(near_, 2, there);
  const auto event = next(far_);
  ASSERT_TRUE(event);
  lend(near_, 2, there);  // its record is still in the ring when the sender ends
  near_.engine.reset();
  std::optional<Completion> late;
  for (int step = 0; step < 100 && !late; ++step, now_ += 25us) {
    far_.engine->progress(now_);
    late = far_.event();
  }
  ASSERT_TRUE(late && late->is_loan);
  for (int step = 0; step < 100; ++step, now_ += 25us) far_.engine->progress(now_);
  EXPECT_EQ(far_.engine->connections()->counters().ended, 1u);
  EXPECT_TRUE(are_equal(far_.engine->messages().loan(event->offset).bytes, copy));
  EXPECT_TRUE(are_equal(far_.engine->messages().loan(late->offset).bytes, copy));
  far_.engine->messages().give_back(far_.port, event->offset, now_);
  far_.engine->cancel_all(far_.port, now_);  // returns the other loan
  EXPECT_EQ(far_.event()->status, Status::canceled);
  EXPECT_EQ(far_.engine->use().loans, 0u);
}

TEST_F(EngineLoan, ComesBackWhenItsReaderIsGoneOrItIsCancelled) {
  const auto there = near_.shared(5000);
  std::vector<std::byte> buffer(10'000);
  receive(far_, buffer, true, 9);
  lend(near_, 2, there);
  const OperationHandle second = lend(near_, 2, there);
  ASSERT_TRUE(next(far_));
  EXPECT_TRUE(near_.engine->cancel(near_.port, second, now_));
  EXPECT_EQ(next(near_)->status, Status::canceled) << "though it is being read";
  const auto of_canceled = next(far_);
  ASSERT_TRUE(of_canceled);
  far_.engine->messages().give_back(far_.port, of_canceled->offset, now_);
  for (int step = 0; step < 50; ++step) pass();
  EXPECT_EQ(near_.counter("engine.dropped.late_answer"), 1u);
  EXPECT_FALSE(near_.event());
  far_.engine.reset();
  std::optional<Completion> end;
  for (int step = 0; step < 100 && !end; ++step, now_ += 25us) {
    near_.engine->progress(now_);
    end = near_.event();
  }
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::refused);
  EXPECT_EQ(near_.engine->use().operations, 0u);
}

// A connected peer writes arbitrary records.
TEST_F(EngineLoan, LiesAreRefusedAndCounted) {
  std::mt19937_64 random(8);
  std::vector<std::byte> buffer(1 << 20);
  auto liar = shm::Connections::open(direct_place(3), 103, direct_options()).value();
  ASSERT_TRUE(liar->ask(direct_place(2), {}));
  for (int step = 0; step < 10; ++step) pass(), liar->attend({});
  shm::Connection& to = liar->peer(liar->find(direct_place(2)));
  ASSERT_EQ(to.state, shm::Connection::State::open);
  std::uint64_t sum = 0;
  std::vector<std::uint64_t> taken;
  const std::uint64_t arena = sizeof(onesided::SharedTables) + kShown;
  for (int step = 0; step < 2000; ++step) {
    if (step % 16 == 0) receive(far_, buffer, random() % 2 == 0, 16);
    const std::uint64_t close = random() % 9 - 4;
    const std::array<std::uint64_t, 6> choices{random(), close, arena + close, arena / 2, 1ULL << 63, 4096};
    const wire::Envelope envelope{.operation = random() % 4 == 0 ? wire::Operation::given_back : wire::Operation::lent,
                                  .status = static_cast<std::uint8_t>(random()),
                                  .target_port = random() % 8 == 0 ? 5 : kPort,
                                  .cookie = random() % 2 == 0 ? random() : std::uint64_t{1} << 32 | random() % 8,
                                  .offset = choices[random() % choices.size()],
                                  .a = choices[random() % choices.size()]};
    write_record(to, envelope);
    // The peer reads the answers.
    while (to.reader.has_record()) {
      const auto record = to.reader.record();
      EXPECT_TRUE(to.writer.learn(record->passed));
      to.reader.pass(record->body.size());
    }
    to.reader.tell();
    while (const auto event = far_.event()) {
      if (!event->is_loan) continue;
      for (const std::byte byte : far_.engine->messages().loan(event->offset).bytes)
        sum += std::to_integer<std::uint64_t>(byte);
      taken.push_back(event->offset);
    }
    if (taken.size() > 3) far_.engine->messages().give_back(far_.port, taken[random() % taken.size()], now_);
  }
  EXPECT_GT(far_.counter("engine.loan.refused"), 500u);
  EXPECT_GT(far_.counter("engine.loan.taken"), 10u);
  EXPECT_EQ(sum, 0u) << "nothing but zeros lies there";
  EXPECT_EQ(to.state, shm::Connection::State::open);
}

// A peer reports that it cannot access the sender's memory. The sender then sends a copy.
TEST_F(EngineLoan, IsSentIfThePeerCannotReachIt) {
  const auto there = filled(far_.shared(500), 9);
  auto blind = shm::Connections::open(direct_place(3), 103, direct_options()).value();
  ASSERT_TRUE(blind->ask(direct_place(2), {}));
  for (int step = 0; step < 10; ++step) pass(), blind->attend({});
  shm::Connection& to = blind->peer(blind->find(direct_place(2)));
  lend(far_, 3, there);
  ASSERT_TRUE(to.reader.has_record());
  wire::ShmRecord record;
  ASSERT_TRUE(wire::decode_shm(to.reader.record()->body, record));
  ASSERT_EQ(record.envelope.operation, wire::Operation::lent);
  EXPECT_EQ(record.envelope.a, 500u);
  to.reader.pass(to.reader.record()->body.size());
  const std::size_t bytes = wire::shm_head_bytes(wire::ShmKind::whole);
  wire::encode_shm(to.writer.reserve(bytes), wire::ShmKind::whole,
                   {.operation = wire::Operation::given_back,
                    .status = static_cast<std::uint8_t>(Status::not_available),
                    .cookie = record.envelope.cookie},
                   0);
  to.writer.publish(bytes, to.reader.read());
  to.reader.tell();
  to.alert();
  pass();
  pass();
  ASSERT_TRUE(to.reader.has_record());
  ASSERT_TRUE(wire::decode_shm(to.reader.record()->body, record));
  EXPECT_EQ(record.envelope.operation, wire::Operation::message);
  EXPECT_TRUE(are_equal(record.payload, there));
  to.reader.pass(to.reader.record()->body.size());
  to.reader.tell();
  to.alert();
  EXPECT_EQ(next(far_)->status, Status::ok);
}

}  // namespace
}  // namespace fairlead::engine
