// The fast path of short sends between two engines of a host (Requester, Executor), and the cases that need the general
// path. The order of requests must be the same on both.

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "qp/fast_path_for_tests.hpp"

namespace fairlead::qp {
namespace {

using namespace std::chrono_literals;

using verbs::Cause;
using verbs::QpState;
using verbs::SendOpcode;
using verbs::WcOpcode;
using verbs::WcStatus;

TEST_F(FastPath, GoesStraightBothWaysAndItsAcknowledgementComesWithTheAnswer) {
  const std::uint64_t answers = b_.pairs().counters().answers_sent;
  constexpr std::uint64_t kRounds = 500;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    fill(100, 24, i);
    b_.receive(i, b_.sge(200, 24));
    a_.receive(i, a_.sge(200, 24));
    a_.send(2 * i, a_.sge(100, 24), now_);
    far_.engine->progress(now_);
    const auto there = b_.completions();
    ASSERT_EQ(there.size(), i == 0 ? 1u : 2u);  // and the completion of its last answer
    EXPECT_EQ(there.back().opcode, WcOpcode::receive);
    EXPECT_EQ(there.back().wr_id, i);
    EXPECT_EQ(there.back().byte_len, 24u);
    ASSERT_EQ(std::memcmp(&b_.memory[200], &a_.memory[100], 24), 0);
    b_.send(2 * i + 1, b_.sge(200, 24), now_);
    near_.engine->progress(now_);
    const auto here = a_.completions();
    ASSERT_EQ(here.size(), 2u);
    EXPECT_EQ(here[0].opcode, WcOpcode::send);
    EXPECT_EQ(here[0].wr_id, 2 * i);
    EXPECT_EQ(here[0].status, WcStatus::success);
    EXPECT_EQ(here[1].opcode, WcOpcode::receive);
  }
  EXPECT_EQ(sent(), kRounds);
  EXPECT_EQ(arrived(), kRounds);
  EXPECT_EQ(b_.pairs().counters().answers_sent, answers);
  EXPECT_EQ(wait_for(b_, 1)[0].wr_id, 2 * kRounds - 1) << "without a message to go with, it goes alone";
  expect_quiet(a_);
  expect_quiet(b_);
}

TEST_F(FastPath, TakesInlineDataEmptyMessagesAndManyAtOnce) {
  std::array<std::byte, 48> stack;
  stack.fill(std::byte{7});
  const verbs::Sge raw{reinterpret_cast<std::uintptr_t>(stack.data()), 48, 0};
  for (std::uint64_t id = 0; id < 3; ++id) b_.receive(id, b_.sge(1000 * id, 768));
  const verbs::Sge whole = a_.sge(5000, 768);
  fill(5000, 768, 3);
  const std::array<verbs::SendRequest, 3> requests{
      verbs::SendRequest{.id = 0, .sges = {&raw, 1}, .flags = verbs::send_flags::inlined}, verbs::SendRequest{.id = 1},
      verbs::SendRequest{.id = 2, .sges = {&whole, 1}, .flags = verbs::send_flags::signaled}};
  std::size_t taken = 0;
  ASSERT_EQ(a_.pairs().post_send(a_.handle, requests, taken, now_), 0);
  stack.fill(std::byte{0});
  const auto there = wait_for(b_, 3);
  EXPECT_EQ(sent(), 3u);
  EXPECT_EQ(arrived(), 3u);
  for (std::uint64_t id = 0; id < 3; ++id) EXPECT_EQ(there[id].wr_id, id);
  EXPECT_EQ(there[0].byte_len, 48u);
  EXPECT_TRUE(std::all_of(&b_.memory[0], &b_.memory[48], [](std::byte byte) { return byte == std::byte{7}; }));
  EXPECT_EQ(there[1].byte_len, 0u);
  EXPECT_EQ(std::memcmp(&b_.memory[2000], &a_.memory[5000], 768), 0);
  EXPECT_EQ(wait_for(a_, 1)[0].wr_id, 2u);
}

TEST_F(FastPath, WaitsForAReceiveAndKeepsTheOrder) {
  for (std::uint64_t id = 0; id < 4; ++id) {
    fill(100 * id, 16, id);
    a_.send(id, a_.sge(100 * id, 16), now_);
  }
  EXPECT_EQ(sent(), 4u);
  for (int step = 0; step < 100; ++step) pass();
  EXPECT_EQ(arrived(), 0u);
  EXPECT_GT(b_.pairs().counters().receiver_not_ready, 0u);
  EXPECT_TRUE(a_.completions().empty());
  for (std::uint64_t id = 0; id < 5; ++id) b_.receive(id, b_.sge(100 * id, 16));
  a_.send(4, a_.sge(0, 16), now_);
  const auto there = wait_for(b_, 5);
  const auto here = wait_for(a_, 5);
  for (std::uint64_t id = 0; id < 5; ++id) {
    EXPECT_EQ(there[id].wr_id, id);
    EXPECT_EQ(here[id].wr_id, id);
    EXPECT_EQ(here[id].status, WcStatus::success);
    EXPECT_EQ(std::memcmp(&b_.memory[100 * id], &a_.memory[id == 4 ? 0 : 100 * id], 16), 0);
  }
  // Later sends take the fast path again.
  const std::uint64_t before = arrived();
  b_.receive(5, b_.sge(0, 16));
  a_.send(5, a_.sge(0, 16), now_);
  wait_for(b_, 1);
  EXPECT_EQ(arrived(), before + 1);
}

TEST_F(FastPath, EndsBothSidesIfTheReceiveIsTooSmall) {
  b_.receive(1, b_.sge(0, 8));
  b_.receive(2, b_.sge(0, 8));
  a_.send(1, a_.sge(0, 9), now_);
  a_.send(2, a_.sge(0, 8), now_);
  const auto there = wait_for(b_, 2);
  EXPECT_EQ(there[0].status, WcStatus::loc_len_err);
  EXPECT_EQ(there[1].status, WcStatus::wr_flush_err);
  const auto here = wait_for(a_, 2);
  EXPECT_EQ(here[0].status, WcStatus::rem_inv_req_err);
  EXPECT_EQ(here[1].status, WcStatus::wr_flush_err);
  EXPECT_EQ(a_.state(), QpState::err);
  EXPECT_EQ(b_.state(), QpState::err);
  EXPECT_EQ(arrived(), 0u);
  expect_quiet(a_);
}

TEST_F(FastPath, EndsBothSidesIfTheReceivesMemoryIsNotThereAnyMore) {
  b_.receive(1, {b_.at(0), 8, b_.key + 1});
  a_.send(1, a_.sge(0, 8), now_);
  EXPECT_EQ(wait_for(b_, 1)[0].status, WcStatus::loc_prot_err);
  EXPECT_EQ(wait_for(a_, 1)[0].status, WcStatus::rem_op_err);
  EXPECT_EQ(arrived(), 0u);
}

TEST_F(FastPath, TellsOfWrongMemoryOfItsOwn) {
  a_.send(1, {a_.at(0), 8, a_.key + 1}, now_);
  const auto here = wait_for(a_, 1);
  EXPECT_EQ(here[0].status, WcStatus::loc_prot_err);
  EXPECT_EQ(sent(), 0u);
}

TEST_F(FastPath, FindsAQueuePairThatHasFailedMeanwhile) {
  b_.receive(1, b_.sge(0, 8));
  a_.send(1, a_.sge(0, 8), now_);
  EXPECT_EQ(sent(), 1u);
  b_.change(QpState::err, now_);
  EXPECT_EQ(wait_for(b_, 1)[0].status, WcStatus::wr_flush_err);
  const auto here = wait_for(a_, 1);
  EXPECT_EQ(here[0].status, WcStatus::retry_exc_err);
  EXPECT_EQ(here[0].vendor_err, std::to_underlying(Cause::queue_pair_not_ready));
  EXPECT_EQ(arrived(), 0u);
  expect_quiet(a_);
}

TEST_F(FastPath, FindsAQueuePairThatIsDestroyedMeanwhile) {
  b_.receive(1, b_.sge(0, 8));
  a_.send(1, a_.sge(0, 8), now_);
  b_.pairs().begin_close(b_.handle, now_);
  b_.pairs().free_pair(b_.handle);
  const auto here = wait_for(a_, 1);
  EXPECT_EQ(here[0].status, WcStatus::retry_exc_err);
  EXPECT_EQ(here[0].vendor_err, std::to_underlying(Cause::no_such_queue_pair));
  EXPECT_TRUE(b_.completions().empty());
  EXPECT_EQ(arrived(), 0u);
}

// The sender posts, resets and connects again before the receiver polls. The receiver must ignore messages of the
// earlier incarnation.
TEST_F(FastPath, ForgetsWhatWasSentInALifeBefore) {
  b_.receive(1, b_.sge(0, 8));
  a_.send(1, a_.sge(0, 8), now_);
  a_.change(QpState::reset, now_);
  for (int step = 0; step < 10; ++step) pass();
  EXPECT_TRUE(a_.pairs().is_quiet(a_.handle));
  EXPECT_TRUE(a_.completions().empty());
  EXPECT_EQ(b_.completions().size(), 1u) << "it had been sent";
  b_.change(QpState::reset, now_);
  a_.connect(b_, now_);
  b_.connect(a_, now_);
  b_.receive(2, b_.sge(0, 8));
  a_.send(2, a_.sge(0, 8), now_);
  EXPECT_EQ(wait_for(b_, 1)[0].wr_id, 2u);
  EXPECT_EQ(wait_for(a_, 1)[0].wr_id, 2u);
}

TEST_F(FastPath, EndsWithThePeerWhenItsTimerHasEnded) {
  const base::Instant begun = now_;
  a_.send(1, a_.sge(0, 8), now_);
  a_.send(2, a_.sge(0, 8), now_);
  EXPECT_EQ(sent(), 2u);
  far_.engine->connections()->end(far_.engine->connections()->find(engine::direct_place(1)), "tired");
  far_.engine->progress(now_);
  std::vector<verbs::WorkCompletion> here;
  for (int step = 0; step < 100'000 && here.size() < 2; ++step) {
    pass(false);
    for (const auto& one : a_.completions()) here.push_back(one);
  }
  ASSERT_EQ(here.size(), 2u);
  EXPECT_EQ(here[0].status, WcStatus::retry_exc_err);
  EXPECT_EQ(here[1].status, WcStatus::wr_flush_err);
  constexpr auto kTimer = 2 * std::chrono::nanoseconds(4096LL << 14);
  EXPECT_GE(now_ - begun, kTimer);
  EXPECT_LT(now_ - begun, kTimer + 1ms);
  EXPECT_TRUE(a_.pairs().is_quiet(a_.handle));
}

// Requests of both paths in random order, with late receives.
TEST_F(FastPath, KeepsTheOrderOfStraightAndOtherRequests) {
  constexpr std::uint64_t kRequests = 4000, kAreas = 64, kArea = 3000;
  std::mt19937_64 random(11);
  std::uint64_t posted = 0, done = 0, receives = 0, received = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;  // of sends: request and size
  constexpr std::size_t kWriteAt = 400'000;                    // behind the memory of all receives
  for (int step = 0; step < 2'000'000 && (done < kRequests || received < order.size()); ++step) {
    while (posted < kRequests && posted - done < kAreas && random() % 3 != 0) {
      const std::uint64_t draw = random() % 16;
      const auto size = static_cast<std::uint32_t>(draw == 0 ? random() % kArea : random() % 60);
      const std::size_t at = posted % kAreas * kArea;
      fill(at, size, posted);
      const std::array<verbs::Sge, 2> pieces{a_.sge(at, size / 2), a_.sge(at + size / 2, size - size / 2)};
      const verbs::Sge piece = a_.sge(at, size);
      verbs::SendRequest request{.id = posted, .sges = {&piece, 1}, .flags = verbs::send_flags::signaled};
      if (draw == 1) request.sges = pieces;
      if (draw == 2) request.flags |= verbs::send_flags::fence;
      if (draw == 3) request.flags |= verbs::send_flags::inlined;
      if (draw == 4) request.flags |= verbs::send_flags::solicited;
      if (draw == 5) request.opcode = SendOpcode::send_imm;
      if (draw == 6) {
        request.opcode = SendOpcode::write;
        request.rkey = b_.key;
        request.remote_addr = b_.at(kWriteAt + at);
      }
      if (request.opcode != SendOpcode::write) order.emplace_back(posted, size);
      ASSERT_EQ(a_.post(request, now_), 0);
      ++posted;
    }
    while (receives < kRequests && receives - received < 100 && random() % 3 != 0) {
      b_.receive(receives, b_.sge(receives % 100 * kArea, kArea));
      ++receives;
    }
    // A request in the other direction now and then, to carry acknowledgements.
    const verbs::SendRequest back{.id = 0, .flags = verbs::send_flags::signaled};
    if (random() % 4 == 0 && b_.post(back, now_) == 0) a_.receive(0, a_.sge(1 << 19, 8));
    pass(random() % 3 != 0);
    for (const auto& one : b_.completions()) {
      ASSERT_EQ(one.status, WcStatus::success);
      if (one.opcode != WcOpcode::receive) continue;
      ASSERT_LT(received, order.size());
      const auto [request, size] = order[received];
      ASSERT_EQ(one.wr_id, received);
      ASSERT_EQ(one.byte_len, size);
      const std::byte* const there = &b_.memory[received % 100 * kArea];
      for (std::uint32_t i = 0; i < size; ++i)
        ASSERT_EQ(there[i], static_cast<std::byte>(std::size_t{request} * 31 + i * 7 + 1)) << request << " at " << i;
      ++received;
    }
    for (const auto& one : a_.completions()) {
      ASSERT_EQ(one.status, WcStatus::success);
      if (one.opcode == WcOpcode::receive) continue;
      ASSERT_EQ(one.wr_id, done);
      ++done;
    }
  }
  EXPECT_EQ(done, kRequests);
  EXPECT_EQ(received, order.size());
  EXPECT_GT(sent(), kRequests / 4);
  EXPECT_GT(arrived(), kRequests / 16);
  EXPECT_LT(arrived(), kRequests * 15 / 16);
  EXPECT_GT(b_.pairs().counters().receiver_not_ready, 0u);
  expect_quiet(a_);
  expect_quiet(b_);
}

// The peer does not read its ring. A caller that waits for the queue pair, or for the memory, has the peer expelled.
TEST_F(FastPath, WhatIsInFlightOfAQueuePairEndsWithItsPeer) {
  a_.send(1, a_.sge(0, 20'000), now_);
  pass(false);
  ASSERT_FALSE(a_.pairs().is_quiet(a_.handle));
  a_.pairs().press_for(a_.handle);
  for (int step = 0; step < 3; ++step) pass(false);
  EXPECT_TRUE(a_.pairs().is_quiet(a_.handle));
  EXPECT_EQ(near_.counter("engine.expelled.holds_memory"), 1u);
}

TEST_F(FastPath, WhatIsInFlightOfARegionEndsWithItsPeer) {
  a_.send(1, a_.sge(0, 20'000), now_);
  pass(false);
  ASSERT_TRUE(a_.pairs().regions().is_held(a_.key));
  a_.pairs().press_for_region(a_.key + 256);
  for (int step = 0; step < 3; ++step) pass(false);
  EXPECT_TRUE(a_.pairs().regions().is_held(a_.key)) << "of another region";
  a_.pairs().press_for_region(a_.key);
  for (int step = 0; step < 3; ++step) pass(false);
  EXPECT_FALSE(a_.pairs().regions().is_held(a_.key));
  EXPECT_EQ(near_.counter("engine.expelled.holds_memory"), 1u);
}

}  // namespace
}  // namespace fairlead::qp
