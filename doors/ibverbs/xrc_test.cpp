// XRC through the C calls: checks of their structures. src/verbs/xrc_test.cpp tests the traffic.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

class XrcCalls : public ::testing::Test {
 protected:
  XrcCalls() : file_(std::tmpfile()) {}
  ~XrcCalls() override { std::fclose(file_); }

  ibv_xrcd* open_domain(int flags, std::uint32_t mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS) {
    ibv_xrcd_init_attr attributes{.comp_mask = mask, .fd = ::fileno(file_), .oflags = flags};
    return ibv_open_xrcd(end_.context, &attributes);
  }
  ibv_qp* create_target(ibv_xrcd* domain, std::uint32_t besides = 0) {
    ibv_qp_init_attr_ex attributes{};
    attributes.qp_type = IBV_QPT_XRC_RECV;
    attributes.comp_mask = IBV_QP_INIT_ATTR_XRCD | besides;
    attributes.pd = end_.domain;
    attributes.xrcd = domain;
    return ibv_create_qp_ex(end_.context, &attributes);
  }
  ibv_qp* open_target(ibv_xrcd* domain, std::uint32_t number) {
    ibv_qp_open_attr attributes{};
    attributes.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attributes.qp_num = number;
    attributes.xrcd = domain;
    attributes.qp_type = IBV_QPT_XRC_RECV;
    return ibv_open_qp(end_.context, &attributes);
  }

  std::FILE* file_;
  End end_{open_for_test(0)};
};

TEST_F(XrcCalls, OpenDomainsAndTargetsByFileAndNumber) {
  EXPECT_EQ(open_domain(O_CREAT, IBV_XRCD_INIT_ATTR_FD), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(open_domain(0), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  ibv_xrcd* const first = open_domain(O_CREAT);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(open_domain(O_CREAT | O_EXCL), nullptr);
  ibv_xrcd* const second = open_domain(0);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(create_target(nullptr), nullptr);
  EXPECT_EQ(create_target(first, IBV_QP_INIT_ATTR_MAX_TSO_HEADER), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_qp* const of_librdmacm = create_target(first, IBV_QP_INIT_ATTR_PD);
  ASSERT_NE(of_librdmacm, nullptr) << "librdmacm always passes a protection domain";
  EXPECT_EQ(of_librdmacm->pd, end_.domain) << "librdmacm creates the shared receive queue in the target's domain";
  EXPECT_EQ(ibv_destroy_qp(of_librdmacm), 0);
  ibv_qp* const target = create_target(first);
  ASSERT_NE(target, nullptr);
  ibv_qp* const again = open_target(second, target->qp_num);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->qp_num, target->qp_num);
  EXPECT_EQ(open_target(second, target->qp_num + 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  // Either handle can modify it. Programs pass more attributes than XRC has, as for RC.
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = 1;
  EXPECT_EQ(ibv_modify_qp(again, &init,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_RETRY_CNT),
            0);
  ibv_qp_attr now{};
  ASSERT_EQ(ibv_query_qp(target, &now, 0, nullptr), 0);
  EXPECT_EQ(now.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(ibv_close_xrcd(first), 0);
  EXPECT_EQ(ibv_close_xrcd(second), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(target), 0);
  EXPECT_EQ(ibv_query_qp(again, &now, 0, nullptr), 0) << "it ends with its last handle";
  EXPECT_EQ(ibv_destroy_qp(again), 0);
  EXPECT_EQ(ibv_close_xrcd(second), 0);
  EXPECT_EQ(ibv_close_xrcd(second), EINVAL);
}

TEST_F(XrcCalls, SharedQueuesNeedTheirDomainAndTheirCompletions) {
  ibv_xrcd* const domain = open_domain(O_CREAT);
  ibv_srq_init_attr_ex attributes{};
  attributes.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
  attributes.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD;
  attributes.srq_type = IBV_SRQT_XRC;
  attributes.pd = end_.domain;
  attributes.xrcd = domain;
  EXPECT_EQ(ibv_create_srq_ex(end_.context, &attributes), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attributes.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
  attributes.cq = end_.queue;
  ibv_srq* const queue = ibv_create_srq_ex(end_.context, &attributes);
  ASSERT_NE(queue, nullptr);
  std::uint32_t number = 0;
  EXPECT_EQ(ibv_get_srq_num(queue, &number), 0);
  EXPECT_NE(number, 0U);
  EXPECT_EQ(ibv_close_xrcd(domain), EBUSY);
  EXPECT_EQ(ibv_destroy_cq(end_.queue), EBUSY);
  EXPECT_EQ(ibv_destroy_srq(queue), 0);
  EXPECT_EQ(ibv_close_xrcd(domain), 0);
}

}  // namespace
}  // namespace fairlead::ibverbs
