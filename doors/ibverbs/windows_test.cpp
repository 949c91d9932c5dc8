// Memory windows through the C calls: the memory that they expose, and when the exposure ends.

#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
constexpr std::size_t kAt = 4096, kLength = 64;  // the part of b's memory that the windows expose

class Windows : public testing::TestWithParam<Apart> {
 protected:
  void SetUp() override {
    connect(a_, b_);
    connect(b_, a_);
  }
  ~Windows() override {
    for (ibv_mw* each : {first_, second_}) EXPECT_EQ(ibv_dealloc_mw(each), 0);
  }
  ibv_mw_bind_info info(unsigned access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) {
    return {.mr = b_.region, .addr = b_.at(kAt), .length = kLength, .mw_access_flags = access};
  }
  ibv_wc_status done_at_b() { return ends_.one_at_b().status; }
  ibv_wc_status bind_second(const ibv_mw_bind_info& info, std::uint32_t key) {
    Request request(1, IBV_WR_BIND_MW, ends_);
    request.bind_mw = {.mw = second_, .rkey = key, .bind_info = info};
    EXPECT_EQ(request.post(b_), 0);
    const ibv_wc done = ends_.one_at_b();
    EXPECT_EQ(done.opcode, IBV_WC_BIND_MW);
    return done.status;
  }
  ibv_wc_status write(std::uint32_t key, std::uint64_t address, std::uint32_t length = 8) {
    Request request(2, IBV_WR_RDMA_WRITE, ends_, a_.sge(0, length));
    request.wr.rdma = {.remote_addr = address, .rkey = key};
    EXPECT_EQ(request.post(a_), 0);
    return ends_.one_at_a().status;
  }
  ibv_wc_status invalidate(End& end, ibv_wr_opcode opcode, std::uint32_t key) {
    Request request(3, opcode, ends_);
    request.invalidate_rkey = key;
    EXPECT_EQ(request.post(end), 0);
    return (&end == &a_ ? ends_.one_at_a() : ends_.one_at_b()).status;
  }

  TwoEnds ends_{GetParam(), {}, {.region_rights = kRights}};
  End &a_ = ends_.a, &b_ = ends_.b;
  ibv_mw* first_ = ibv_alloc_mw(b_.domain, IBV_MW_TYPE_1);
  ibv_mw* second_ = ibv_alloc_mw(b_.domain, IBV_MW_TYPE_2);
};
INSTANTIATE_TEST_SUITE_P(, Windows, testing::Values(Apart::same_device, Apart::two_devices),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(Windows, OfType1ShowMemoryThatTheirRegionHides) {
  ibv_mw_bind wanted{.wr_id = 9, .send_flags = IBV_SEND_SIGNALED, .bind_info = info()};
  const std::uint32_t before = first_->rkey;
  ASSERT_EQ(ibv_bind_mw(b_.pair, first_, &wanted), 0);
  const ibv_wc done = ends_.one_at_b();
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.wr_id, 9u);
  EXPECT_NE(first_->rkey, before);
  a_.memory[0] = std::byte{0x5A};
  EXPECT_EQ(write(first_->rkey, b_.at(kAt)), IBV_WC_SUCCESS);
  EXPECT_EQ(b_.word(kAt) & 0xFF, 0x5Au);
  const std::uint32_t bound = first_->rkey;
  wanted.bind_info.length = 0;
  ASSERT_EQ(ibv_bind_mw(b_.pair, first_, &wanted), 0);
  EXPECT_EQ(done_at_b(), IBV_WC_SUCCESS);
  EXPECT_EQ(write(bound, b_.at(kAt)), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Windows, OfType2CountFromZeroAndEndWhereTheyEnd) {
  const std::uint32_t key = ibv_inc_rkey(second_->rkey);
  ASSERT_EQ(bind_second(info(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED), key), IBV_WC_SUCCESS);
  a_.memory[0] = std::byte{0x77};
  EXPECT_EQ(write(key, kLength - 8), IBV_WC_SUCCESS);
  EXPECT_EQ(b_.word(kAt + kLength - 8) & 0xFF, 0x77u);
  EXPECT_EQ(write(key, kLength - 7), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Windows, AreInvalidatedByTheirOwnEndInOrder) {
  const std::uint32_t key = ibv_inc_rkey(second_->rkey);
  ASSERT_EQ(bind_second(info(), key), IBV_WC_SUCCESS);
  // Bound again after its invalidation, in one chain.
  Request again(5, IBV_WR_BIND_MW, ends_);
  again.bind_mw = {.mw = second_, .rkey = ibv_inc_rkey(key), .bind_info = info()};
  Request invalidation(4, IBV_WR_LOCAL_INV, ends_);
  invalidation.invalidate_rkey = key;
  invalidation.next = &again;
  ASSERT_EQ(invalidation.post(b_), 0);
  const auto done = ends_.at_b(2);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].opcode, IBV_WC_LOCAL_INV);
  for (const ibv_wc& each : done) EXPECT_EQ(each.status, IBV_WC_SUCCESS);
  EXPECT_EQ(write(ibv_inc_rkey(key), b_.at(kAt)), IBV_WC_SUCCESS);
  EXPECT_EQ(write(key, b_.at(kAt)), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Windows, AreInvalidatedByASendOfTheOtherEnd) {
  const std::uint32_t key = ibv_inc_rkey(second_->rkey);
  ASSERT_EQ(bind_second(info(), key), IBV_WC_SUCCESS);
  ASSERT_EQ(b_.receive(7, b_.sge(0, 16)), 0);
  EXPECT_EQ(write(key, b_.at(kAt)), IBV_WC_SUCCESS);
  EXPECT_EQ(invalidate(a_, IBV_WR_SEND_WITH_INV, key), IBV_WC_SUCCESS);
  const ibv_wc received = ends_.one_at_b();
  EXPECT_EQ(received.wr_id, 7u);
  EXPECT_EQ(received.wc_flags & (IBV_WC_WITH_INV | IBV_WC_WITH_IMM), unsigned{IBV_WC_WITH_INV});
  EXPECT_EQ(received.invalidated_rkey, key);
  EXPECT_EQ(write(key, b_.at(kAt)), IBV_WC_REM_ACCESS_ERR);
}

TEST_P(Windows, ThatAreNoneAreNotInvalidated) {
  ASSERT_EQ(b_.receive(7, b_.sge(0, 16)), 0);
  EXPECT_EQ(invalidate(a_, IBV_WR_SEND_WITH_INV, b_.region->rkey), IBV_WC_REM_ACCESS_ERR);
  const ibv_wc received = ends_.one_at_b();
  EXPECT_EQ(received.wr_id, 7u);
  EXPECT_EQ(received.status, IBV_WC_LOC_ACCESS_ERR);
  EXPECT_EQ(b_.state(), IBV_QPS_ERR);
}

TEST_P(Windows, BadRequestsEndTheQueuePair) {
  EXPECT_EQ(invalidate(b_, IBV_WR_LOCAL_INV, b_.region->rkey), IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(b_.state(), IBV_QPS_ERR);
  EXPECT_EQ(bind_second(info(), second_->rkey), IBV_WC_WR_FLUSH_ERR);
}

TEST_P(Windows, BeyondTheirRegionAreNotBound) {
  ibv_mw_bind_info beyond = info();
  beyond.length = End::kMemory;
  EXPECT_EQ(bind_second(beyond, second_->rkey), IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(b_.state(), IBV_QPS_ERR);
}

TEST_P(Windows, HoldTheirRegionAndNotTheirQueuePair) {
  ASSERT_EQ(bind_second(info(), second_->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(b_.region), EBUSY);
  EXPECT_EQ(ibv_rereg_mr(b_.region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kRights), IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(b_.domain), EBUSY);
  const std::uint32_t key = second_->rkey;
  ASSERT_EQ(ibv_dealloc_mw(second_), 0);
  EXPECT_EQ(write(key, b_.at(kAt)), IBV_WC_REM_ACCESS_ERR);
  second_ = ibv_alloc_mw(b_.domain, IBV_MW_TYPE_2);  // freed at the end
}

TEST_P(Windows, AreMadeWithinTheirKinds) {
  EXPECT_EQ(ibv_alloc_mw(b_.domain, static_cast<ibv_mw_type>(3)), nullptr);
  ibv_mw_bind wanted{.wr_id = 1, .send_flags = 0, .bind_info = info()};
  EXPECT_EQ(ibv_bind_mw(b_.pair, second_, &wanted), EINVAL);
  ibv_device_attr attributes{};
  ASSERT_EQ(ibv_query_device(b_.context, &attributes), 0);
  EXPECT_GT(attributes.max_mw, 0);
  constexpr unsigned kFlags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
  EXPECT_EQ(attributes.device_cap_flags & kFlags, kFlags);
}

}  // namespace
}  // namespace fairlead::ibverbs
