// Transfers that are to be repeated: when, how many in a pass, and against a target that lies. Their results:
// transfers_test.cpp.

#include "engine/repeated_transfers.hpp"

#include <gtest/gtest.h>

#include <array>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

TEST(RepeatedTransfers, AreDueInOrderAfterTheirTime) {
  RepeatedTransfers repeated;
  EXPECT_EQ(repeated.take_due(base::Instant(1s)), 0u);
  EXPECT_TRUE(repeated.add(5, 0, base::Instant(1s)));
  EXPECT_TRUE(repeated.add(6, 0, base::Instant(1s + 1us)));
  EXPECT_EQ(repeated.take_due(base::Instant(1s + RepeatedTransfers::kAfter - 1ns)), 0u);
  EXPECT_EQ(repeated.take_due(base::Instant(1s + RepeatedTransfers::kAfter)), 5u);
  EXPECT_EQ(repeated.take_due(base::Instant(1s + RepeatedTransfers::kAfter)), 0u);
  EXPECT_FALSE(repeated.is_empty());
  EXPECT_EQ(repeated.take_due(base::Instant(2s)), 6u);
  EXPECT_TRUE(repeated.is_empty());
}

TEST(RepeatedTransfers, WaitTwiceAsLongEachTime) {
  EXPECT_EQ(RepeatedTransfers::delay(0), RepeatedTransfers::kAfter);
  EXPECT_EQ(RepeatedTransfers::delay(3), 8 * RepeatedTransfers::kAfter);
  EXPECT_EQ(RepeatedTransfers::delay(~0U), 4096 * RepeatedTransfers::kAfter);
  RepeatedTransfers repeated;
  EXPECT_TRUE(repeated.add(5, 3, base::Instant(1s)));
  EXPECT_TRUE(repeated.add(6, 0, base::Instant(1s)));
  EXPECT_EQ(repeated.take_due(base::Instant(1s + 7 * RepeatedTransfers::kAfter)), 6u);
  EXPECT_EQ(repeated.take_due(base::Instant(1s + 7 * RepeatedTransfers::kAfter)), 0u);
  EXPECT_EQ(repeated.take_due(base::Instant(1s + 8 * RepeatedTransfers::kAfter)), 5u);
}

class RepeatedTransfersOfPair : public EnginePair {
 protected:
  /// Puts to a blank of the far engine. Returns the operation.
  OperationHandle put() {
    OperationHandle blank, operation;
    std::uint64_t key = 0;
    EXPECT_EQ(far_.engine->messages().exposures().add_blank(far_.port, blank, key), Status::ok);
    EXPECT_EQ(near_.engine->messages().transfer(near_.port, OperationKind::put,
                                                {.target = {direct_place(2), kPort},
                                                 .target_epoch = far_.engine->epoch(),
                                                 .key = key,
                                                 .memory = {&piece_, 1},
                                                 .length = bytes_.size()},
                                                operation, now_),
              Status::ok);
    return operation;
  }
  std::uint64_t asked() { return far_.counter("engine.asked_early"); }

  std::array<std::byte, 64> bytes_{};
  iovec piece_{bytes_.data(), bytes_.size()};
};

TEST_F(RepeatedTransfersOfPair, APeerThatSaysItOftenHasItRepeatedOnce) {
  const OperationHandle operation = put();
  for (int step = 0; step < 10'000 && asked() == 0; ++step) pass();
  pass();
  const wire::Envelope again{.operation = wire::Operation::done,
                             .status = std::to_underlying(Status::again),
                             .cookie = pack_name(operation.slot, operation.generation)};
  shm::Connections& connections = *far_.engine->connections();
  shm::Connection& to = connections.peer(connections.find(direct_place(1)));
  for (int i = 0; i < 100; ++i) publish_record(to, again);
  to.alert();
  for (int step = 0; step < 4; ++step) near_.engine->progress(now_);
  EXPECT_EQ(near_.counter("engine.dropped.late_answer"), 100u);
  const std::uint64_t before = asked();
  now_ += RepeatedTransfers::kAfter;
  for (int step = 0; step < 4; ++step) pass();
  EXPECT_EQ(asked(), before + 1);
}

TEST_F(RepeatedTransfersOfPair, ThoseThatHaveEndedDelayNoOther) {
  const auto put_and_hear = [&] {
    const OperationHandle operation = put();
    for (int step = 0; step < 8; ++step) {
      near_.engine->progress(now_);
      far_.engine->progress(now_);
    }
    return operation;
  };
  constexpr std::uint64_t kEnded = 100;
  for (std::uint64_t i = 0; i < kEnded; ++i) EXPECT_TRUE(near_.engine->cancel(near_.port, put_and_hear(), now_));
  put_and_hear();
  ASSERT_EQ(asked(), kEnded + 1);
  now_ += RepeatedTransfers::kAfter;
  near_.engine->progress(now_);
  far_.engine->progress(now_);
  EXPECT_EQ(asked(), kEnded + 2);
}

TEST_F(RepeatedTransfersOfPair, AreFewInAPass) {
  constexpr std::uint64_t kPuts = 2 * RepeatedTransfers::kInPass + 1;
  for (std::uint64_t i = 0; i < kPuts; ++i) put();
  for (int step = 0; step < 10'000 && asked() < kPuts; ++step) pass();
  ASSERT_EQ(asked(), kPuts);
  near_.engine->progress(now_);
  now_ += RepeatedTransfers::kAfter;
  for (const std::uint64_t repeated :
       {std::uint64_t{RepeatedTransfers::kInPass}, std::uint64_t{2 * RepeatedTransfers::kInPass}, kPuts}) {
    near_.engine->progress(now_);
    far_.engine->progress(now_);
    EXPECT_EQ(asked(), kPuts + repeated);
  }
}

}  // namespace
}  // namespace fairlead::engine
