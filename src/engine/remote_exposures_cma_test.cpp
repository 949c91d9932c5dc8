// Puts and gets that the initiator carries out itself by cross-memory attach, in memory outside the owner's arena:
// false records in the table, readers that delay the end, and the fallback to the ring. Both engines are in this
// process, which accesses its own memory by its process id.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"

namespace fairlead::engine {
namespace {

class EngineCma : public EnginePair {
 protected:
  EngineCma() : EnginePair(true) {
    for (std::size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<std::byte>(i * 7 >> 3);
  }

  /// Exposes `size` bytes of far's memory, and returns the key.
  std::uint64_t expose(std::size_t size, bool is_writable) {
    pieces_.push_back({there_.data(), size});
    std::uint64_t key = 0;
    EXPECT_EQ(far_.engine->messages().expose(
                  far_.port, {.memory = {&pieces_.back(), 1}, .length = size, .is_writable = is_writable, .cookie = 77},
                  exposed_, key),
              Status::ok);
    return key;
  }
  Status transfer(OperationKind kind, std::uint64_t key, std::span<std::byte> memory) {
    pieces_.push_back({memory.data(), memory.size()});
    OperationHandle operation;
    return near_.engine->messages().transfer(near_.port, kind,
                                             {.target = {direct_place(2), kPort},
                                              .target_epoch = 102,
                                              .key = key,
                                              .memory = {&pieces_.back(), 1},
                                              .length = memory.size(),
                                              .cookie = 5},
                                             operation, now_);
  }
  void expect_put_through_the_ring(std::uint64_t key, std::size_t size) {
    const std::uint64_t before = near_.counter("engine.direct.puts");
    ASSERT_EQ(transfer(OperationKind::put, key, std::span(source_).first(size)), Status::ok);
    const auto end = next(near_), passive = next(far_);
    ASSERT_TRUE(end && passive);
    EXPECT_EQ(end->status, Status::ok);
    EXPECT_EQ(passive->status, Status::ok);
    EXPECT_EQ(std::memcmp(there_.data(), source_.data(), size), 0);
    EXPECT_EQ(near_.counter("engine.direct.puts"), before);
  }
  onesided::OwnedExposure& owned(std::uint64_t key) {
    return reinterpret_cast<onesided::OwnedRecords*>(far_.engine->connections()->records())
        ->exposures[key % onesided::SharedTables::kExposures];
  }
  onesided::PublishedExposure& shown(std::uint64_t key) {
    return far_.tables().exposures[key % onesided::SharedTables::kExposures];
  }
  shm::Connection& far_of_near() {
    return near_.engine->connections()->peer(near_.engine->connections()->find(direct_place(2)));
  }

  std::deque<iovec> pieces_;
  std::vector<std::byte> source_ = std::vector<std::byte>(100'000), there_ = source_, copy_ = source_;
  OperationHandle exposed_;
};

TEST_F(EngineCma, APutAndAGetNeedNobodyAtTheTarget) {
  EXPECT_EQ(near_.counter("shm.process.reached"), 1u);
  for (const std::size_t size : {1, 4, 8, 63, 4096, 100'000}) {
    std::ranges::fill(there_, std::byte{0xAA});
    const std::uint64_t writable = expose(size, true);
    ASSERT_EQ(transfer(OperationKind::put, writable, std::span(source_).first(size)), Status::ok);
    const auto end = near_.event();
    ASSERT_TRUE(end) << "it is done at once";
    EXPECT_EQ(end->status, Status::ok);
    EXPECT_EQ(end->length, size);
    EXPECT_EQ(std::memcmp(there_.data(), source_.data(), size), 0) << "nobody has run there";
    EXPECT_TRUE(size == there_.size() || there_[size] == std::byte{0xAA});
    const std::uint64_t readable = expose(size, false);
    ASSERT_EQ(transfer(OperationKind::get, readable, std::span(copy_)), Status::ok);
    EXPECT_EQ(near_.event()->length, size) << "of memory that could hold more";
    EXPECT_EQ(std::memcmp(copy_.data(), source_.data(), size), 0);
    for (int i = 0; i < 2; ++i) {
      const auto passive = next(far_);
      ASSERT_TRUE(passive);
      EXPECT_EQ(passive->status, Status::ok);
      EXPECT_EQ(passive->length, size);
      EXPECT_EQ(passive->source, (RemotePort{direct_place(1), kPort}));
    }
  }
  EXPECT_EQ(near_.counter("engine.direct.puts_by_calls"), 6u);
  EXPECT_EQ(near_.counter("engine.direct.gets_by_calls"), 6u);
  EXPECT_EQ(far_.engine->use().operations, 0u);
}

TEST_F(EngineCma, WhatIsNotRightIsAskedOfTheTargetWhoSaysWhy) {
  const std::uint64_t key = expose(4096, true);
  ASSERT_EQ(transfer(OperationKind::put, key, std::span(source_).first(4097)), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::too_big);
  ASSERT_EQ(transfer(OperationKind::get, key, copy_), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::not_permitted);
  ASSERT_EQ(transfer(OperationKind::put, key, std::span(source_).first(10)), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::ok);
  ASSERT_EQ(transfer(OperationKind::put, key, std::span(source_).first(10)), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::stale) << "once";
  EXPECT_EQ(next(far_)->length, 10u);
  EXPECT_EQ(near_.counter("engine.direct.puts_by_calls"), 1u);
}

// Every peer can write to the shared table. Its contents lead no initiator to memory that the owner has not exposed.
TEST_F(EngineCma, LiesInTheSharedTableLeadNowhere) {
  std::mt19937_64 random(5);
  std::vector<std::byte> bystander(4096, std::byte{0x11});
  onesided::PublishCount lies;
  for (int step = 0; step < 1000; ++step) {
    const std::size_t size = 1 + random() % 20'000;
    const bool is_writable = random() % 2 == 0;
    const std::uint64_t key = expose(size, is_writable);
    there_[size] = std::byte{0x22};
    onesided::SharedExposure lie;
    ASSERT_TRUE(shown(key).record.read(lie));
    ASSERT_EQ(lie.offset, 0u);
    if (random() % 4 == 0)
      lie.offset = random() % 2 == 0 ? reinterpret_cast<std::uintptr_t>(bystander.data()) : random();
    if (random() % 4 != 0) lie.length = random() >> random() % 64;
    if (random() % 4 == 0) lie.is_writable = !is_writable;
    shown(key).record.publish(lie, lies);
    if (random() % 4 == 0) shown(key).holder.store(random() >> random() % 64);
    const auto kind = random() % 2 == 0 ? OperationKind::put : OperationKind::get;
    ASSERT_EQ(transfer(kind, key, std::span(kind == OperationKind::put ? source_ : copy_).first(1 + random() % 20'000)),
              Status::ok);
    ASSERT_TRUE(next(near_)) << "it ends";
    pieces_.clear();
    pass();
    EXPECT_EQ(there_[size], std::byte{0x22}) << "nothing behind its end";
    far_.engine->cancel(far_.port, exposed_, now_);
    if (far_.engine->use().operations != 0) shown(key).holder.store(0);
    ASSERT_TRUE(next(far_)) << "the exposure ends, too";
    ASSERT_EQ(far_.engine->use().operations, 0u);
  }
  EXPECT_TRUE(std::ranges::all_of(bystander, [](std::byte byte) { return byte == std::byte{0x11}; }));
}

// An initiator uses the exposure from the look-up of the owner's record to the last byte. Meanwhile the exposure does
// not end, whatever others write to the table.
TEST_F(EngineCma, WhatSomebodyHoldsIsNotEndedUntilHeLetsGoOrIsGone) {
  for (const std::uint64_t name : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    const std::uint64_t key = expose(4096, true);
    far_of_near().enter(shm::Use::of_exposure(key));
    if (name != 0) shown(key).holder.store(name);
    EXPECT_TRUE(far_.engine->cancel(far_.port, exposed_, now_));
    for (int step = 0; step < 100; ++step) pass();
    EXPECT_FALSE(far_.event());
    EXPECT_NE(far_.engine->next_deadline(), base::kNever);
    far_of_near().leave();
    shown(key).holder.store(0);
    const auto end = next(far_);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->status, Status::canceled);
  }
  const std::uint64_t key = expose(4096, true);
  far_of_near().enter(shm::Use::of_exposure(key));
  EXPECT_TRUE(far_.engine->cancel(far_.port, exposed_, now_));
  near_.engine.reset();
  for (int step = 0; step < 1000 && far_.engine->use().operations > 0; ++step) {
    now_ += 25us;
    far_.engine->progress(now_);
  }
  EXPECT_EQ(far_.event()->status, Status::canceled);
}

// A second peer has begun its look-up when the first one reports that it is done.
TEST_F(EngineCma, WhatIsDoneEndsWellWhenTheLastHasLetGo) {
  const std::uint64_t key = expose(4096, true);
  auto second = shm::Connections::open(direct_place(3), 103, direct_options(true)).value();
  ASSERT_TRUE(second->ask(direct_place(2), {}));
  for (int step = 0; step < 10; ++step) pass(), second->attend({});
  shm::Connection& to = second->peer(second->find(direct_place(2)));
  ASSERT_EQ(to.state, shm::Connection::State::open);
  to.enter(shm::Use::of_exposure(key));
  ASSERT_EQ(transfer(OperationKind::put, key, std::span(source_).first(4096)), Status::ok);
  EXPECT_EQ(next(near_)->status, Status::ok);
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(far_.event());
  EXPECT_EQ(owned(key).key.load(), 0u) << "the second will find nothing";
  EXPECT_TRUE(far_.engine->cancel(far_.port, exposed_, now_));
  to.leave();
  const auto end = next(far_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::ok);
  EXPECT_EQ(end->length, 4096u);
}

// An initiator reports before it leaves. The owner may check in between, and does not wait for it.
TEST_F(EngineCma, WhoeverHasToldIsNotWaitedFor) {
  const std::uint64_t key = expose(4096, true);
  shm::Connection& to = far_of_near();
  to.enter(shm::Use::of_exposure(key));
  ASSERT_TRUE(shown(key).claim(key, to.doorbell_bit + 1));
  write_record(to, {.operation = wire::Operation::carried_out,
                    .source_port = 9,
                    .target_port = kPort,
                    .key = key ^ 102U,
                    .a = 4096});
  const auto end = far_.event();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::ok);
  to.leave();
}

// The peer that claimed the exposure is gone, and another one still uses it. The event follows when that one leaves.
TEST_F(EngineCma, WhatAPeerThatIsGoneHadClaimedEndsWhenNobodyElseIsAtIt) {
  const std::uint64_t key = expose(4096, true);
  auto second = shm::Connections::open(direct_place(3), 103, direct_options(true)).value();
  ASSERT_TRUE(second->ask(direct_place(2), {}));
  for (int step = 0; step < 10; ++step) pass(), second->attend({});
  shm::Connection& to = second->peer(second->find(direct_place(2)));
  to.enter(shm::Use::of_exposure(key));
  ASSERT_TRUE(shown(key).claim(key, to.doorbell_bit + 1));
  far_of_near().enter(shm::Use::of_exposure(key));
  second.reset();
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(far_.event());
  EXPECT_EQ(owned(key).key.load(), 0u);
  far_of_near().leave();
  const auto end = next(far_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::refused);
}

TEST_F(EngineCma, WhatSomebodyHoldsForLongEndsByForce) {
  const std::uint64_t key = expose(4096, true);
  far_of_near().enter(shm::Use::of_exposure(key));
  EXPECT_TRUE(far_.engine->cancel(far_.port, exposed_, now_));
  now_ += 6s;
  const auto end = next(far_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::canceled);
  EXPECT_EQ(owned(key).key.load(), 0u);
}

// The transfer is done, but another peer stays at the exposure. The event follows after the give-up time.
TEST_F(EngineCma, WhatIsDoneIsToldThoughSomebodyStays) {
  const std::uint64_t key = expose(4096, true);
  auto second = shm::Connections::open(direct_place(3), 103, direct_options(true)).value();
  ASSERT_TRUE(second->ask(direct_place(2), {}));
  for (int step = 0; step < 10; ++step) pass(), second->attend({});
  shm::Connection& to = second->peer(second->find(direct_place(2)));
  to.enter(shm::Use::of_exposure(key));
  ASSERT_EQ(transfer(OperationKind::put, key, std::span(source_).first(4096)), Status::ok);
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_FALSE(far_.event());
  now_ += 6s;
  const auto end = next(far_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, Status::ok);
  EXPECT_EQ(end->length, 4096u);
}

TEST_F(EngineCma, AProcessThatIsNoMoreTheSameIsReachedThroughTheRing) {
  auto* const nonce = reinterpret_cast<shm::Nonce*>(far_.engine->connections()->records() - shm::Identity::kRecordsAt);
  *nonce = {1, 2};
  expect_put_through_the_ring(expose(4096, true), 4096);
  EXPECT_EQ(near_.counter("engine.direct.calls_failed"), 1u);
  EXPECT_EQ(far_of_near().process.denial(), shm::CrossMemory::Denial::not_itself);
  expect_put_through_the_ring(expose(4096, true), 4096);
  EXPECT_EQ(near_.counter("engine.direct.calls_failed"), 1u) << "it is not tried again";
}

TEST_F(EngineCma, WhatFailsHalfWayIsAskedFor) {
  constexpr std::size_t kPage = 4096;
  auto* const half =
      static_cast<std::byte*>(::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::munmap(half + kPage, kPage);
  const std::uint64_t key = expose(2 * kPage, true);
  owned(key).address = reinterpret_cast<std::uintptr_t>(half);  // its second page is not mapped
  expect_put_through_the_ring(key, 2 * kPage);
  EXPECT_EQ(near_.counter("engine.direct.calls_failed"), 1u);
  EXPECT_EQ(near_.counter("engine.direct.puts_by_calls"), 0u);
  ::munmap(half, kPage);
  const std::uint64_t next_key = expose(2 * kPage, true);
  ASSERT_EQ(transfer(OperationKind::put, next_key, std::span(source_).first(100)), Status::ok);
  EXPECT_EQ(near_.counter("engine.direct.puts_by_calls"), 1u) << "the rest is reached still";
  EXPECT_EQ(next(far_)->status, Status::ok);
}

}  // namespace
}  // namespace fairlead::engine
