// Each asynchronous event through the C calls, and the rules of order and visibility. tests/port_events_test.cpp covers
// port events, which need a network interface of its own.

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>

#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

class Events : public testing::TestWithParam<Apart> {};
class Order : public testing::TestWithParam<Apart> {};
const auto name_of_apart = [](const auto& one) { return std::string(to_string(one.param)); };
INSTANTIATE_TEST_SUITE_P(, Events, testing::Values(Apart::same_device, Apart::two_devices), name_of_apart);
INSTANTIATE_TEST_SUITE_P(, Order, testing::Values(Apart::same_device, Apart::two_devices), name_of_apart);

TEST_P(Events, TheFirstRequestTellsOfACommunication) {
  TwoEnds ends(GetParam());
  connect(ends.a, ends.b);
  connect(ends.b, ends.a, IBV_QPS_RTR);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    ASSERT_EQ(Request(id, IBV_WR_RDMA_WRITE, ends, ends.a.sge(0, 8)).post(ends.a), 0);
    EXPECT_EQ(ends.one_at_a().status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(ends.b.events(), std::vector{IBV_EVENT_COMM_EST});  // once
  EXPECT_TRUE(ends.a.events().empty());
}

TEST_P(Events, ASendQueueTellsWhenItIsDrained) {
  TwoEnds ends(GetParam());
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  ASSERT_EQ(Request(1, IBV_WR_SEND, ends, ends.a.sge(0, 8)).post(ends.a), 0);  // waits for a receive
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_SQD;
  attributes.en_sqd_async_notify = 1;
  ASSERT_EQ(ibv_modify_qp(ends.a.pair, &attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  ASSERT_EQ(Request(2, IBV_WR_SEND, ends, ends.a.sge(0, 8)).post(ends.a), 0);  // waits for RTS
  EXPECT_TRUE(ends.a.events().empty());
  for (std::uint64_t id = 50; id < 52; ++id) ASSERT_EQ(ends.b.receive(id, ends.b.sge(0, 8)), 0);
  EXPECT_EQ(ends.one_at_a().wr_id, 1u);
  EXPECT_EQ(ends.a.events(), std::vector{IBV_EVENT_SQ_DRAINED});
  attributes.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(ends.a.pair, &attributes, IBV_QP_STATE), 0);
  EXPECT_EQ(ends.one_at_a().wr_id, 2u);
  EXPECT_EQ(ends.at_b(2).size(), 2u);
}

TEST_P(Events, ASharedReceiveQueueTellsOfItsLimitAndOfTheLastOfAQueuePair) {
  TwoEnds ends(GetParam(), {}, {.has_shared = true});
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  for (std::uint64_t id = 50; id < 54; ++id) ASSERT_EQ(ends.b.receive(id, ends.b.sge(0, 8)), 0);
  ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 3};
  ASSERT_EQ(ibv_modify_srq(ends.b.shared, &limit, IBV_SRQ_LIMIT), 0);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(id != 2 || ends.b.events().empty());  // three are not below the limit of three
    ASSERT_EQ(Request(id, IBV_WR_SEND, ends, ends.a.sge(0, 8)).post(ends.a), 0);
    EXPECT_EQ(ends.one_at_b().wr_id, 49 + id);  // in order
    EXPECT_EQ(ends.one_at_a().status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(ends.b.events(), std::vector{IBV_EVENT_SRQ_LIMIT_REACHED});
  ASSERT_EQ(ibv_query_srq(ends.b.shared, &limit), 0);
  EXPECT_EQ(limit.srq_limit, 0u);
  ASSERT_EQ(move_to(ends.b, {}, IBV_QPS_ERR), 0);
  EXPECT_EQ(ends.b.events(), std::vector{IBV_EVENT_QP_LAST_WQE_REACHED});
  ibv_wc none;
  EXPECT_EQ(ibv_poll_cq(ends.b.queue, 1, &none), 0);  // the rest is for other queue pairs
}

TEST_P(Events, AnOverrunIsToldByTheQueueOnceAndByTheQueuePair) {
  TwoEnds ends(GetParam(), {.max_send = 64, .queue_capacity = 2});
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  const int room = ends.a.queue->cqe;
  for (int id = 0; id < room + 2; ++id) {
    Request request(static_cast<std::uint64_t>(id), IBV_WR_RDMA_WRITE, ends, ends.a.sge(0, 8));
    ASSERT_EQ(request.post(ends.a), 0);
  }
  std::vector<ibv_event_type> told;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (told.size() < 2 && std::chrono::steady_clock::now() < end) {  // without polling, which would make room
    poll_once(ends.b);
    for (const ibv_event_type each : ends.a.events()) told.push_back(each);
  }
  EXPECT_EQ(std::ranges::count(told, IBV_EVENT_CQ_ERR), 1);
  EXPECT_EQ(std::ranges::count(told, IBV_EVENT_QP_FATAL), 1);
  EXPECT_EQ(ends.a.state(), IBV_QPS_ERR);
  const auto old = ends.at_a(static_cast<std::size_t>(room));
  ASSERT_EQ(old.size(), static_cast<std::size_t>(room));
  for (std::size_t id = 0; id < old.size(); ++id) EXPECT_EQ(old[id].wr_id, id);
  ibv_wc none;
  EXPECT_LT(ibv_poll_cq(ends.a.queue, 1, &none), 0);
}

TEST(EventsUnacknowledged, HoldTheObjectBack) {
  TwoEnds ends(Apart::same_device);
  connect(ends.a, ends.b);
  connect(ends.b, ends.a, IBV_QPS_RTR);
  ASSERT_EQ(Request(1, IBV_WR_RDMA_WRITE, ends, ends.a.sge(0, 8)).post(ends.a), 0);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(ends.b.context, &event), 0);
  std::atomic<bool> is_acknowledged = false;
  bool was_acknowledged = false;
  std::jthread destroyer([&] {
    EXPECT_EQ(ibv_destroy_qp(std::exchange(ends.b.pair, nullptr)), 0);
    was_acknowledged = is_acknowledged;
  });
  is_acknowledged = true;
  ibv_ack_async_event(&event);
  destroyer.join();
  EXPECT_TRUE(was_acknowledged);
}

TEST_P(Order, AReceiveMakesAllWritesBeforeItVisible) {
  TwoEnds ends(GetParam());
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  constexpr std::uint32_t kBytes = 100'000;  // many segments
  for (int round = 1; round <= 10; ++round) {
    std::ranges::fill(ends.a.memory, static_cast<std::byte>(round));
    ASSERT_EQ(ends.b.receive(50, ends.b.sge(900'000, 8)), 0);
    Request first(1, IBV_WR_RDMA_WRITE, ends, ends.a.sge(0, kBytes), 0);
    Request second(2, IBV_WR_RDMA_WRITE, ends, ends.a.sge(0, kBytes), kBytes);
    Request last(3, round % 2 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM, ends, ends.a.sge(0, 8), 2 * kBytes);
    last.imm_data = static_cast<__be32>(round);
    first.send_flags = second.send_flags = 0;
    first.next = &second;
    second.next = &last;
    ASSERT_EQ(first.post(ends.a), 0);
    const ibv_wc received = ends.one_at_b();
    ASSERT_EQ(received.opcode, round % 2 == 0 ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(received.imm_data, round % 2 != 0 ? static_cast<__be32>(round) : 0);
    (void)ends.b.state();
    EXPECT_TRUE(std::all_of(ends.b.memory.begin(), ends.b.memory.begin() + 2 * kBytes,
                            [&](std::byte each) { return each == static_cast<std::byte>(round); }));
    EXPECT_EQ(ends.one_at_a().wr_id, 3u);
  }
}

TEST_P(Order, CompletionsComeInTheOrderOfPostsWhateverTheOperation) {
  TwoEnds ends(GetParam());
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  constexpr std::array kOpcodes{IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};
  for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(ends.b.receive(id, ends.b.sge(500'000, 65'536)), 0);
  for (std::uint64_t id = 0; id < 32; ++id) {
    const ibv_wr_opcode opcode = kOpcodes[id % 4];
    const bool is_atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    Request request(id, opcode, ends, ends.a.sge(id * 1024, is_atomic ? 8 : id % 8 == 0 ? 60'000 : 100), 0);
    ASSERT_EQ(request.post(ends.a), 0);
  }
  const auto done = ends.at_a(32);
  ASSERT_EQ(done.size(), 32u);
  for (std::uint64_t id = 0; id < 32; ++id) {
    EXPECT_EQ(done[id].wr_id, id);
    EXPECT_EQ(done[id].status, IBV_WC_SUCCESS);
  }
  const auto received = ends.at_b(8);
  ASSERT_EQ(received.size(), 8u);
  for (std::uint64_t id = 0; id < 8; ++id) EXPECT_EQ(received[id].wr_id, id);
}

TEST_P(Order, AFenceHoldsAWriteUntilTheReadBeforeItHasEnded) {
  TwoEnds ends(GetParam());
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  // The fenced write sends back the bytes that were read, so they must have arrived by then.
  constexpr std::uint32_t kBytes = 50'000;
  std::ranges::fill(std::span(ends.b.memory).first(kBytes), std::byte{7});
  (void)ends.b.state();
  Request read(1, IBV_WR_RDMA_READ, ends, ends.a.sge(0, kBytes), 0);
  Request write(2, IBV_WR_RDMA_WRITE, ends, ends.a.sge(0, kBytes), 200'000);
  write.send_flags |= IBV_SEND_FENCE;
  read.next = &write;
  ASSERT_EQ(read.post(ends.a), 0);
  const auto done = ends.at_a(2);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].status, IBV_WC_SUCCESS);
  (void)ends.b.state();
  EXPECT_TRUE(std::all_of(ends.b.memory.begin() + 200'000, ends.b.memory.begin() + 200'000 + kBytes,
                          [](std::byte each) { return each == std::byte{7}; }));
}

TEST_P(Order, WhatWasAcknowledgedBeforeAFailureSucceedsAndTheRestIsFlushedOnceInOrder) {
  TwoEnds ends(GetParam());
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  for (std::uint64_t id = 0; id < 10; ++id) {
    Request request(id, IBV_WR_RDMA_WRITE, ends, ends.a.sge(0, 64), 0);
    if (id == 5) ++request.wr.rdma.rkey;
    if (id > 5) request.send_flags = 0;
    ASSERT_EQ(request.post(ends.a), 0);
  }
  const auto done = ends.at_a(10);
  ASSERT_EQ(done.size(), 10u);
  for (std::uint64_t id = 0; id < 10; ++id) {
    EXPECT_EQ(done[id].wr_id, id);
    EXPECT_EQ(done[id].status, id < 5 ? IBV_WC_SUCCESS : id == 5 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_P(Order, AtomicsOfSeveralQueuePairsAndOfTheProcessorAreAllCounted) {
  TwoEnds ends(GetParam());
  TwoEnds others(GetParam());
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  connect(others.a, others.b);
  connect(others.b, others.a);
  ibv_mr* shared =
      ibv_reg_mr(others.b.domain, ends.b.memory.data(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  ASSERT_NE(shared, nullptr);
  constexpr int kEach = 20;
  for (int i = 0; i < kEach; ++i) {
    ASSERT_EQ(Request(1, IBV_WR_ATOMIC_FETCH_AND_ADD, ends, ends.a.sge(0, 8)).post(ends.a), 0);
    Request other(1, IBV_WR_ATOMIC_FETCH_AND_ADD, others, others.a.sge(0, 8));
    other.wr.atomic.remote_addr = ends.b.at(0);
    other.wr.atomic.rkey = shared->rkey;
    ASSERT_EQ(other.post(others.a), 0);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(ends.b.memory.data())).fetch_add(1);
  }
  EXPECT_EQ(ends.at_a(kEach).size(), std::size_t{kEach});
  EXPECT_EQ(others.at_a(kEach).size(), std::size_t{kEach});
  EXPECT_EQ(ends.b.word(0), 3u * kEach);
  EXPECT_EQ(ibv_dereg_mr(shared), 0);
}

}  // namespace
}  // namespace fairlead::ibverbs
