// Puts and gets between two engines on virtual time: results, refusals, and transfers that come before their exposure.

#include "engine/transfers.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "engine/two_engines_for_tests.hpp"

namespace fairlead::engine {
namespace {

class Bulk : public TwoEngines {
 protected:
  void make_memory(OperationKind kind, std::size_t passive_size, std::size_t active_size) {
    passive_ = pattern(passive_size, 1);
    active_ = pattern(active_size, 2);
    before_ = kind == OperationKind::put ? active_ : passive_;
    passive_piece_ = piece(passive_);
    active_piece_ = piece(active_);
  }
  /// Exposes b's memory and starts a's transfer with it.
  Status transfer(OperationKind kind, std::size_t passive_size, std::size_t active_size, bool is_writable) {
    make_memory(kind, passive_size, active_size);
    OperationHandle name;
    EXPECT_EQ(
        b().engine->messages().expose(
            b().port, {.memory = {&passive_piece_, 1}, .length = passive_size, .is_writable = is_writable, .cookie = 5},
            name, key_),
        Status::ok);
    return again(kind);
  }
  Status again(OperationKind kind) {
    OperationHandle name;
    return start_from(a(), kind, name);
  }
  /// Starts a transfer of that side with b's memory.
  Status start_from(Side& initiator, OperationKind kind, OperationHandle& name) {
    return initiator.engine->messages().transfer(initiator.port, kind,
                                                 {.target = b().remote(),
                                                  .target_epoch = b().engine->epoch(),
                                                  .key = key_,
                                                  .memory = {&active_piece_, 1},
                                                  .length = active_.size(),
                                                  .cookie = 6},
                                                 name, now_);
  }

  std::vector<std::byte> passive_, active_, before_;
  iovec passive_piece_{}, active_piece_{};
  std::uint64_t key_ = 0;
};

TEST_F(Bulk, APutArrivesAndBothEndsKnow) {
  for (const std::size_t size : {0, 1, 1000, 300'000, 5'000'000}) {
    ASSERT_EQ(transfer(OperationKind::put, size, size, true), Status::ok);
    run(5s);
    const auto at_a = a().events(), at_b = b().events();
    ASSERT_EQ(at_a.size(), 1u) << size;
    ASSERT_EQ(at_b.size(), 1u) << size;
    EXPECT_EQ(at_a[0].status, Status::ok);
    EXPECT_EQ(at_b[0].status, Status::ok);
    EXPECT_EQ(at_b[0].length, size);
    EXPECT_EQ(passive_, before_);
  }
}

TEST_F(Bulk, AGetArrivesAndBothEndsKnow) {
  for (const std::size_t size : {0, 1, 1000, 300'000, 5'000'000}) {
    ASSERT_EQ(transfer(OperationKind::get, size, size + 10, false), Status::ok);
    run(5s);
    const auto at_a = a().events(), at_b = b().events();
    ASSERT_EQ(at_a.size(), 1u) << size;
    ASSERT_EQ(at_b.size(), 1u) << size;
    EXPECT_EQ(at_a[0].status, Status::ok);
    EXPECT_EQ(at_a[0].length, size);
    EXPECT_EQ(at_b[0].status, Status::ok);
    EXPECT_TRUE(std::equal(before_.begin(), before_.end(), active_.begin()));
  }
}

TEST_F(Bulk, WhatDoesNotFitTheExposureIsRefusedAndTheExposureStays) {
  const auto expect_refused = [&](Status status) {
    run(100ms);
    const auto at_a = a().events();
    ASSERT_EQ(at_a.size(), 1u);
    EXPECT_EQ(at_a[0].status, status);
    EXPECT_TRUE(b().events().empty()) << "the exposure still waits for the right one";
  };
  ASSERT_EQ(transfer(OperationKind::put, 100, 101, true), Status::ok);
  expect_refused(Status::too_big);
  ASSERT_EQ(transfer(OperationKind::get, 100, 99, false), Status::ok);
  expect_refused(Status::too_big);
  ASSERT_EQ(transfer(OperationKind::put, 100, 100, false), Status::ok);
  expect_refused(Status::not_permitted);
  ASSERT_EQ(transfer(OperationKind::get, 100, 100, true), Status::ok);
  expect_refused(Status::not_permitted);
}

TEST_F(Bulk, AKeyWorksOnceAndEveryWrongBitOfItIsStale) {
  ASSERT_EQ(transfer(OperationKind::put, 100, 100, true), Status::ok);
  const std::uint64_t right = key_;
  a().events();
  run(100ms);
  EXPECT_EQ(a().events().size(), 1u);
  EXPECT_EQ(b().events().size(), 1u);
  const auto expect_stale = [&] {
    ASSERT_EQ(again(OperationKind::put), Status::ok);
    run(100ms);
    const auto events = a().events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].status, Status::stale);
    EXPECT_TRUE(b().events().empty());
  };
  expect_stale();
  ASSERT_EQ(transfer(OperationKind::put, 100, 100, true), Status::ok);
  run(100ms);
  a().events();
  b().events();
  for (int bit = 0; bit < 64; ++bit) {
    key_ = right ^ (1ULL << bit);
    expect_stale();
  }
}

TEST_F(Bulk, AnExposureCanBeCancelledUntilATransferHasBegun) {
  passive_ = pattern(10, 1);
  passive_piece_ = piece(passive_);
  OperationHandle name;
  ASSERT_EQ(b().engine->messages().expose(
                b().port, {.memory = {&passive_piece_, 1}, .length = 10, .is_writable = true, .cookie = 5}, name, key_),
            Status::ok);
  EXPECT_TRUE(b().engine->cancel(b().port, name, now_));
  EXPECT_FALSE(b().engine->cancel(b().port, name, now_)) << "it is gone";
  const auto events = b().events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status, Status::canceled);
}

TEST_F(Bulk, ARestartedTargetIsStaleAndWhatWasPendingSaysWhy) {
  ASSERT_EQ(transfer(OperationKind::put, 100, 100, true), Status::ok);
  run(100ms);
  a().events();
  start(1, 999);
  ASSERT_EQ(again(OperationKind::put), Status::ok) << "nothing has told yet that the peer is another";
  run(10s);
  auto events = a().events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status, Status::restarted);
  EXPECT_EQ(a().engine->ports().find(a().port)->operations, 0u);
}

// A transfer that comes before its exposure.
class EarlyBulk : public Bulk {
 protected:
  void start_early(OperationKind kind, std::size_t size) {
    make_memory(kind, size, size);
    ASSERT_EQ(b().engine->messages().exposures().add_blank(b().port, blank_, key_), Status::ok);
    ASSERT_EQ(again(kind), Status::ok);
    run(50ms);
    EXPECT_TRUE(a().events().empty());
    EXPECT_GT(b().engine->messages().counters().asked_early, 1u) << "it comes again";
  }
  Status expose(bool is_writable) {
    return b().engine->messages().exposures().fill_blank(
        b().port, blank_,
        {.memory = {&passive_piece_, 1}, .length = passive_.size(), .is_writable = is_writable, .cookie = 5});
  }
  Status status_at_a() {
    const auto events = a().events();
    EXPECT_EQ(events.size(), 1u);
    EXPECT_EQ(a().engine->ports().find(a().port)->operations, 0u);
    a().engine->check();
    return events.empty() ? Status::again : events[0].status;
  }

  OperationHandle blank_;
};

TEST_F(EarlyBulk, IsDoneWhenTheExposureIsThere) {
  for (const OperationKind kind : {OperationKind::put, OperationKind::get}) {
    for (const std::size_t size : {1, 1000, 300'000}) {
      start_early(kind, size);
      ASSERT_EQ(expose(kind == OperationKind::put), Status::ok);
      run(100ms);
      EXPECT_EQ(status_at_a(), Status::ok);
      const auto at_b = b().events();
      ASSERT_EQ(at_b.size(), 1u) << size;
      EXPECT_EQ(at_b[0].status, Status::ok);
      EXPECT_EQ(at_b[0].length, size);
      EXPECT_EQ(kind == OperationKind::put ? passive_ : active_, before_);
    }
  }
}

TEST_F(EarlyBulk, IsStaleIfThereNeverIsOne) {
  start_early(OperationKind::put, 1000);
  run(4s);
  EXPECT_TRUE(a().events().empty());
  run(6s);
  EXPECT_EQ(status_at_a(), Status::stale);
  const std::uint64_t asked = b().engine->messages().counters().asked_early;
  run(1s);
  EXPECT_EQ(b().engine->messages().counters().asked_early, asked) << "it has ended";
}

// All bytes of a refused put are sent, which takes longer here than the give-up time.
TEST_F(EarlyBulk, IsDoneAlsoIfItsBytesTakeLong) {
  ASSERT_TRUE(options_.set(Option::give_up_after, 100));
  for (std::uint8_t i = 0; i < 2; ++i) start(i, 200 + i);
  path::SimLink slow;
  slow.bytes_per_second = 10'000'000;
  network_.set_link(host(0), host(1), slow);
  make_memory(OperationKind::put, 3'000'000, 3'000'000);
  ASSERT_EQ(b().engine->messages().exposures().add_blank(b().port, blank_, key_), Status::ok);
  ASSERT_EQ(again(OperationKind::put), Status::ok);
  run(10ms);
  EXPECT_GT(b().engine->messages().counters().asked_early, 0u);
  ASSERT_EQ(expose(true), Status::ok);
  run(2s);
  EXPECT_EQ(status_at_a(), Status::ok);
  EXPECT_EQ(b().events().size(), 1u);
  EXPECT_EQ(passive_, before_);
}

TEST_F(EarlyBulk, IsNotRepeatedAfterItWasCancelled) {
  start_early(OperationKind::put, 1000);
  const auto operations = a().engine->messages().use().operations;
  ASSERT_EQ(operations, 1u);
  a().engine->cancel_all(a().port, now_);
  EXPECT_EQ(status_at_a(), Status::canceled);
  ASSERT_EQ(expose(true), Status::ok);
  run(100ms);
  EXPECT_TRUE(b().events().empty());
}

TEST_F(EarlyBulk, EndsWithItsPeer) {
  start_early(OperationKind::get, 1000);
  start(1, 999);
  run(10s);
  EXPECT_EQ(status_at_a(), Status::restarted);
}

TEST_F(EarlyBulk, IsRepeatedFewTimes) {
  start_early(OperationKind::put, 1000);
  run(6s);
  EXPECT_EQ(status_at_a(), Status::stale);
  EXPECT_LT(b().engine->messages().counters().asked_early, 25u);
}

// Both ports are of one engine.
class EarlyBulkInside : public EarlyBulk {
 protected:
  void start_inside(OperationKind kind, std::size_t size) {
    make_memory(kind, size, size);
    ASSERT_EQ(b().engine->messages().exposures().add_blank(b().port, blank_, key_), Status::ok);
    ASSERT_EQ(start_from(b(), kind, name_), Status::ok);
    run(50ms);
    EXPECT_TRUE(b().events().empty());
  }
  std::uint32_t operations() { return b().engine->messages().use().operations; }

  OperationHandle name_;
};

TEST_F(EarlyBulkInside, IsDoneWhenTheExposureIsThere) {
  for (const OperationKind kind : {OperationKind::put, OperationKind::get}) {
    for (const std::size_t size : {1, 1000, 30'000'000}) {
      start_inside(kind, size);
      ASSERT_EQ(expose(kind == OperationKind::put), Status::ok);
      run(200ms);
      const auto events = b().events();
      ASSERT_EQ(events.size(), 2u) << size;
      for (const Completion& event : events) EXPECT_EQ(event.status, Status::ok);
      EXPECT_EQ(kind == OperationKind::put ? passive_ : active_, before_);
      EXPECT_EQ(operations(), 0u);
    }
  }
}

TEST_F(EarlyBulkInside, IsStaleIfThereNeverIsOne) {
  start_inside(OperationKind::get, 100);
  run(10s);
  const auto events = b().events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status, Status::stale);
  EXPECT_EQ(operations(), 1u) << "the blank";
}

TEST_F(EarlyBulkInside, FewBytesAreCopiedInAPass) {
  constexpr std::uint32_t kPuts = 8;
  constexpr std::size_t kBytes = LocalCopies::kBytesInTurn;
  make_memory(OperationKind::put, kBytes, kBytes);
  std::array<OperationHandle, kPuts> blanks;
  for (OperationHandle& blank : blanks) {
    ASSERT_EQ(b().engine->messages().exposures().add_blank(b().port, blank, key_), Status::ok);
    ASSERT_EQ(start_from(b(), OperationKind::put, name_), Status::ok);
  }
  for (const OperationHandle& blank : blanks) {
    blank_ = blank;
    ASSERT_EQ(expose(true), Status::ok);
  }
  now_ += RepeatedTransfers::kAfter;
  std::size_t events = 0;
  for (int passes = 0; passes < 100 && events < 2 * kPuts; ++passes) {
    b().engine->progress(now_);
    const std::size_t more = b().events().size();
    EXPECT_LE(more, 2u) << "both ends of one";
    events += more;
  }
  EXPECT_EQ(events, 2 * kPuts);
}

TEST_F(EarlyBulkInside, CanBeCancelled) {
  start_inside(OperationKind::put, 100);
  EXPECT_TRUE(b().engine->cancel(b().port, name_, now_));
  const auto events = b().events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status, Status::canceled);
  ASSERT_EQ(expose(true), Status::ok);
  run(1s);
  EXPECT_TRUE(b().events().empty());
  b().engine->check();
}

}  // namespace
}  // namespace fairlead::engine
