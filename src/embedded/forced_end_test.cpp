// Objects that are withdrawn while a local peer accesses them and never leaves: the wait must end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/place_for_tests.hpp"
#include "embedded/attach.hpp"
#include "engine/engine_options.hpp"
#include "onesided/shared_tables.hpp"
#include "shm/connections.hpp"

namespace fairlead::embedded {
namespace {

class ForcedEnd : public testing::Test {
 protected:
  void SetUp() override {
    ::alarm(60);  // ends a test that hangs
    engine::EngineOptions options;
    constexpr std::uint64_t kShared = 1 << 20;
    ASSERT_TRUE(options.set("give_up_after", "50") && options.set("path", "shm"));
    ASSERT_TRUE(options.set(engine::Option::shm_shared_max, kShared));
    base::SocketAddress place = base::place_for_tests(1);
    place.port = 20480;  // a port with queue pair numbers
    core_ = attach_embedded(place, options).value();
    guest_ = shm::Connections::open(base::place_for_tests(2), 5,
                                    {.ring_bytes = 64 * 1024,
                                     .arena_bytes = sizeof(onesided::SharedTables) + kShared,
                                     .arena_head_bytes = sizeof(onesided::SharedTables)})
                 .value();
    ASSERT_TRUE(guest_->ask(core_->address(), {}));
    for (int i = 0; i < 1'000'000 && guest_->counters().opened == 0; ++i) guest_->attend({});
    ASSERT_EQ(guest_->counters().opened, 1u);
  }
  ~ForcedEnd() override { ::alarm(0); }
  std::uint64_t put_out() const {
    for (const observe::CounterFact& fact : core_->facts().counters)
      if (fact.name == "shm.peers_put_out") return fact.value;
    return 0;
  }

  /// Returns its key.
  std::uint32_t add_region() {
    const qp::RegionPlan plan{
        .base = memory_.data(), .length = memory_.size(), .iova = reinterpret_cast<std::uintptr_t>(memory_.data())};
    return core_->pairs()->add_region(plan).value();
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(4096);
  std::shared_ptr<engine::Core> core_;
  std::unique_ptr<shm::Connections> guest_;
};

TEST_F(ForcedEnd, ARegionIsRemovedThoughAPeerNeverLeaves) {
  const std::uint32_t key = add_region();
  guest_->peer(guest_->find(core_->address())).enter(shm::Use::of_region(key >> 8, 0));
  EXPECT_EQ(core_->pairs()->remove_region(key), Status::ok);
  EXPECT_EQ(put_out(), 1u);
  std::vector<shm::ConnectionEvent::Kind> told;
  guest_->attend({});
  while (const auto event = guest_->next_event()) told.push_back(event->kind);
  EXPECT_EQ(told.back(), shm::ConnectionEvent::Kind::ended) << "it hears of it";
}

TEST_F(ForcedEnd, WhoeverLeavesInTimeStays) {
  const std::uint32_t key = add_region();
  shm::Connection& there = guest_->peer(guest_->find(core_->address()));
  there.enter(shm::Use::of_region(key >> 8, 0));
  there.leave();
  EXPECT_EQ(core_->pairs()->remove_region(key), Status::ok);
  EXPECT_EQ(put_out(), 0u);
}

// While a peer accesses a region, others must not find the memory that it will have after its change.
TEST_F(ForcedEnd, ARegionIsNotPublishedAnewWhileAPeerIsAtIt) {
  shm::Connection& there = guest_->peer(guest_->find(core_->address()));
  ASSERT_NE(there.arena, nullptr);
  qp::PairCore& pairs = *core_->pairs();
  const std::span<std::byte> memory = pairs.allocate(2 * 4096);
  ASSERT_FALSE(memory.empty());
  const auto plan_of = [&](std::size_t page) {
    return qp::RegionPlan{.base = memory.data() + page * 4096,
                          .length = 4096,
                          .iova = 4096 * (page + 1),
                          .access = verbs::access::remote_read};
  };
  const std::uint32_t key = pairs.add_region(plan_of(0)).value();
  const auto published = [&] {
    onesided::SharedRegion region;
    EXPECT_TRUE(reinterpret_cast<onesided::SharedTables*>(there.arena->head())->regions[key >> 8].read(region));
    return region;
  };
  EXPECT_EQ(published().iova, 4096U);
  there.enter(shm::Use::of_region(key >> 8, 0));
  qp::Withdrawal first, second;
  ASSERT_TRUE(pairs.begin_change_region(key, plan_of(1), first));
  EXPECT_FALSE(pairs.is_over(first));
  EXPECT_EQ(published().key, 0U);
  ASSERT_TRUE(pairs.begin_change_region(key, plan_of(0), second));
  EXPECT_FALSE(pairs.is_over(second));
  there.leave();
  EXPECT_TRUE(pairs.is_over(first));
  EXPECT_EQ(published().key, 0U) << "the other change is not over";
  EXPECT_TRUE(pairs.is_over(second));
  EXPECT_EQ(published().key, key);
  EXPECT_EQ(published().iova, 4096U);
  EXPECT_EQ(pairs.remove_region(key), Status::ok);
  EXPECT_EQ(published().key, 0U);
  pairs.free(memory);
}

// Queue pairs opened meanwhile must not get its number, because its owner is still closing it.
TEST_F(ForcedEnd, AQueuePairKeepsItsNumberUntilItIsOver) {
  qp::PairCore& pairs = *core_->pairs();
  qp::NoticeStream* const notices = pairs.open_notices().value();
  qp::CompletionStream* const stream = pairs.open_completions({.capacity = 64, .events = notices}).value();
  qp::PairPlan plan;
  plan.send_stream = plan.receive_stream = stream;
  plan.events = notices;
  const qp::OpenPair closed = pairs.open_pair(plan).value();
  guest_->peer(guest_->find(core_->address())).enter(shm::Use::of_region(0, closed.number));
  qp::Withdrawal withdrawal = pairs.begin_close_pair(closed.handle);
  EXPECT_FALSE(pairs.is_over(withdrawal));
  std::vector<qp::PairHandle> others;
  for (auto other = pairs.open_pair(plan); other; other = pairs.open_pair(plan)) {
    ASSERT_NE(other->handle.index, closed.handle.index);
    others.push_back(other->handle);
  }
  while (!pairs.is_over(withdrawal)) core_->progress();
  const qp::OpenPair again = pairs.open_pair(plan).value();
  EXPECT_EQ(again.handle.index, closed.handle.index);
}

// A peer that has seen the right may still write. When the call has returned, it must not.
TEST_F(ForcedEnd, AQueuePairLosesARightWhenThoseWhoUseItHaveLeft) {
  qp::PairCore& pairs = *core_->pairs();
  qp::NoticeStream* const notices = pairs.open_notices().value();
  qp::CompletionStream* const stream = pairs.open_completions({.capacity = 64, .events = notices}).value();
  qp::PairPlan plan;
  plan.send_stream = plan.receive_stream = stream;
  plan.events = notices;
  const qp::OpenPair open = pairs.open_pair(plan).value();
  constexpr std::uint32_t kMayWrite = verbs::access::remote_write, kMayRead = verbs::access::remote_read;
  verbs::QpAttributes attributes;
  attributes.access_flags = kMayWrite | kMayRead;
  attributes.max_dest_rd_atomic = 1;
  attributes.dest_qp_num = 1;
  const auto change = [&](verbs::QpState to) {
    qp::Withdrawal withdrawal;
    const verbs::QpState from = std::exchange(attributes.state, to);
    EXPECT_EQ(pairs.begin_change_pair(open.handle, from, attributes, withdrawal), Status::ok);
    return withdrawal;
  };
  for (const verbs::QpState to : {verbs::QpState::init, verbs::QpState::rtr, verbs::QpState::rts}) change(to);
  shm::Connection& reader = guest_->peer(guest_->find(core_->address()));
  reader.enter(shm::Use::of_region(0, open.number));

  const auto takes = [&](std::uint32_t flags, std::uint8_t reads) {
    attributes.access_flags = flags;
    attributes.max_dest_rd_atomic = reads;
    qp::Withdrawal withdrawal = change(verbs::QpState::rts);
    return !pairs.is_over(withdrawal);
  };
  EXPECT_FALSE(takes(kMayWrite | kMayRead, 1)) << "nothing was taken away";
  EXPECT_TRUE(takes(kMayWrite, 1));
  EXPECT_FALSE(takes(kMayWrite | kMayRead, 1)) << "a right was given";
  EXPECT_TRUE(takes(kMayWrite | kMayRead, 0)) << "reads are not answered any more";
  EXPECT_TRUE(takes(0, 0));
  EXPECT_FALSE(takes(kMayWrite, 0));
  qp::Withdrawal withdrawal;
  attributes.access_flags = 0;
  withdrawal = change(verbs::QpState::rts);
  EXPECT_FALSE(pairs.is_over(withdrawal));
  reader.leave();
  EXPECT_TRUE(pairs.is_over(withdrawal));
}

TEST_F(ForcedEnd, WhatRefusesAQueuePairIsNamed) {
  qp::PairCore& pairs = *core_->pairs();
  qp::NoticeStream* const notices = pairs.open_notices().value();
  qp::CompletionStream* const stream = pairs.open_completions({.capacity = 64, .events = notices}).value();
  qp::PairPlan plan;
  plan.send_stream = plan.receive_stream = stream;
  plan.events = notices;
  plan.capacity.max_send_sge = 100'000;
  EXPECT_THAT(pairs.open_pair(plan).error().message, testing::HasSubstr("max_send_sge"));
  plan.capacity.max_send_sge = 1;
  plan.shared_receives = pairs.open_receive_queue({.depth = 4}).value();
  plan.has_shared_receives = true;
  ASSERT_EQ(pairs.close_receive_queue(plan.shared_receives), Status::ok);
  const auto opened = pairs.open_pair(plan);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().status, Status::stale);
  EXPECT_THAT(opened.error().message, testing::HasSubstr("shared receive queue"));
}

// A peer that is stopped while it accesses another object delays nothing.
TEST_F(ForcedEnd, WhoeverIsElsewhereHoldsUpNothing) {
  const std::uint32_t key = add_region();
  guest_->peer(guest_->find(core_->address())).enter(shm::Use::of_region((key >> 8) + 1, 0));
  EXPECT_EQ(core_->pairs()->remove_region(key), Status::ok);
  EXPECT_EQ(put_out(), 0u);
}

}  // namespace
}  // namespace fairlead::embedded
