// Program errors are answered with an error, in the result and in errno, and never cause invalid accesses.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "doors/ibverbs/abi.hpp"

namespace {

class WrongUse : public testing::Test {
 protected:
  WrongUse() {
    ibv_device** list = ibv_get_device_list(nullptr);
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    domain_ = ibv_alloc_pd(context_);
    queue_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  }
  ~WrongUse() override { ibv_close_device(context_); }

  ibv_qp* make_pair(ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue_;
    attributes.qp_type = type;
    attributes.cap = {4, 4, 1, 1, 0};
    return ibv_create_qp(domain_, &attributes);
  }

  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_cq* queue_ = nullptr;
  std::array<char, 4096> memory_{};
};

TEST_F(WrongUse, NothingIsMadeOfNothing) {
  EXPECT_EQ(ibv_open_device(nullptr), nullptr);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(ibv_alloc_pd(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_reg_mr(nullptr, memory_.data(), 16, 0), nullptr);
  EXPECT_EQ(ibv_create_cq(context_, 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(ibv_create_cq(context_, -1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(ibv_create_cq(context_, 16, nullptr, nullptr, context_->num_comp_vectors), nullptr);
  EXPECT_EQ(ibv_create_qp(domain_, nullptr), nullptr);
  EXPECT_EQ(ibv_create_srq(domain_, nullptr), nullptr);
  EXPECT_EQ(ibv_destroy_qp(nullptr), EINVAL);
  EXPECT_EQ(ibv_close_device(nullptr), EINVAL);
}

TEST_F(WrongUse, OrderOfDestructionIsWatched) {
  ibv_qp* pair = make_pair();
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(domain_), EBUSY);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(ibv_destroy_cq(queue_), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(pair), 0);
  EXPECT_EQ(ibv_destroy_cq(queue_), 0);
  EXPECT_EQ(ibv_dealloc_pd(domain_), 0);
}

TEST_F(WrongUse, WhatIsGoneIsNotFollowed) {
  ibv_qp* pair = make_pair();
  EXPECT_EQ(ibv_destroy_qp(pair), 0);
  EXPECT_EQ(ibv_destroy_qp(pair), EINVAL);
  ibv_send_wr request{};
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(context_->ops.post_send(pair, &request, &bad), EINVAL);
  EXPECT_EQ(bad, &request);
  ibv_mr* region = ibv_reg_mr(domain_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_dereg_mr(region), EINVAL);
  ibv_wc completion;
  EXPECT_EQ(ibv_destroy_cq(queue_), 0);
  EXPECT_LT(context_->ops.poll_cq(queue_, 1, &completion), 0);
  EXPECT_EQ(ibv_destroy_cq(queue_), EINVAL);
}

TEST_F(WrongUse, ScribbledHandlesAreNoticed) {
  ibv_qp* pair = make_pair();
  const auto handle = pair->handle;
  pair->handle ^= 0x5555;
  EXPECT_EQ(ibv_destroy_qp(pair), EINVAL);
  pair->handle = handle;
  EXPECT_EQ(ibv_destroy_qp(pair), 0);
  const auto domain_handle = domain_->handle;
  domain_->handle = ~0U;
  EXPECT_EQ(ibv_dealloc_pd(domain_), EINVAL);
  domain_->handle = domain_handle;
}

TEST_F(WrongUse, RequestsAreCheckedBeforeTheyArePosted) {
  ibv_qp* pair = make_pair();
  ibv_send_wr send{};
  ibv_send_wr* bad_send = nullptr;
  send.opcode = IBV_WR_SEND;
  EXPECT_EQ(context_->ops.post_send(pair, &send, &bad_send), EINVAL) << "in RESET";
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(context_->ops.post_recv(pair, &receive, &bad_receive), EINVAL) << "in RESET";
  receive.num_sge = 3;
  EXPECT_EQ(context_->ops.post_recv(pair, &receive, &bad_receive), EINVAL) << "a list that is not there";
  receive.num_sge = -1;
  EXPECT_EQ(context_->ops.post_recv(pair, &receive, &bad_receive), EINVAL);
  send.opcode = static_cast<ibv_wr_opcode>(14);
  EXPECT_EQ(context_->ops.post_send(pair, &send, &bad_send), EINVAL);
  EXPECT_EQ(bad_send, &send);
}

TEST_F(WrongUse, AttributesThatAreMissingChangeNothing) {
  ibv_qp* pair = make_pair();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(ibv_modify_qp(pair, &attributes, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(pair->state, IBV_QPS_RESET);
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(pair, &attributes, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(init.send_cq, queue_);
}

TEST_F(WrongUse, ThereIsNoMemoryWhereNothingIsMapped) {
  EXPECT_EQ(ibv_reg_mr(domain_, reinterpret_cast<void*>(4096), 4096, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(ibv_reg_mr(domain_, memory_.data(), 64, IBV_ACCESS_REMOTE_WRITE), nullptr) << "needs LOCAL_WRITE";
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(WrongUse, IndicesEndSomewhere) {
  ibv_gid gid{};
  __be16 key = 0;
  EXPECT_EQ(ibv_query_gid(context_, 1, 0, &gid), 0);
  EXPECT_NE(ibv_query_gid(context_, 1, 1000, &gid), 0);
  EXPECT_NE(ibv_query_gid(context_, 2, 0, &gid), 0);
  EXPECT_NE(ibv_query_gid(context_, 1, -1, &gid), 0);
  EXPECT_NE(ibv_query_pkey(context_, 1, 1, &key), 0);
  std::array<ibv_gid_entry, 2> entries{};
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 1, entries.data(), 0), ENODATA);
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 0, entries.data(), 1), EINVAL);
  ASSERT_EQ(ibv_query_gid_table(context_, entries.data(), entries.size(), 0), 2);
  EXPECT_EQ(entries[0].gid_index, 0u);
  EXPECT_EQ(entries[1].gid_index, 3u);
  EXPECT_EQ(std::memcmp(entries[0].gid.raw, entries[1].gid.raw, sizeof gid.raw), 0);
  EXPECT_EQ(ibv_query_gid_table(context_, entries.data(), 1, 0), -EINVAL);
}

TEST_F(WrongUse, ClosingADeviceEndsWhatWasMadeInIt) {
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_context* other = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  ibv_pd* domain = ibv_alloc_pd(other);
  ibv_comp_channel* channel = ibv_create_comp_channel(other);
  ASSERT_NE(ibv_create_cq(other, 4, nullptr, channel, 0), nullptr);
  ASSERT_NE(ibv_reg_mr(domain, memory_.data(), 64, 0), nullptr);
  EXPECT_EQ(ibv_close_device(other), 0);
  EXPECT_EQ(ibv_dealloc_pd(domain), EINVAL);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), EINVAL);
}

}  // namespace
