// A program that asks for what this device lacks is told EOPNOTSUPP, and the log names what it asked for and what works
// instead, once for each feature.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include <fairlead/log.hpp>

#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

using testing::Contains;
using testing::HasSubstr;

class AbsentFeatures : public testing::Test {
 protected:
  AbsentFeatures() {
    set_log_handler([this](const LogLine& line) {
      const std::lock_guard guard(mutex_);
      lines_.emplace_back(line.text);
    });
  }
  ~AbsentFeatures() override {
    set_log_handler({});
    ibv_close_device(context_);
  }

  std::vector<std::string> lines() {
    const std::lock_guard guard(mutex_);
    return lines_;
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;
  ibv_context* context_ = open_for_test(0);
};

TEST_F(AbsentFeatures, AreNamedOnceWithWhatWorksInstead) {
  ASSERT_NE(context_, nullptr);
  ibv_pd* domain = ibv_alloc_pd(context_);
  ibv_cq* queue = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  for (int i = 0; i < 2; ++i) {
    ibv_counters_init_attr counters{};
    EXPECT_EQ(ibv_create_counters(context_, &counters), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_wq_init_attr work{};
    EXPECT_EQ(ibv_create_wq(context_, &work), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(ibv_reg_dmabuf_mr(domain, 0, 4096, 0, 0, 0), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_modify_cq_attr moderation{};
    moderation.attr_mask = IBV_CQ_ATTR_MODERATE;
    EXPECT_EQ(ibv_modify_cq(queue, &moderation), EOPNOTSUPP);
    ibv_qp_init_attr raw{};
    raw.send_cq = raw.recv_cq = queue;
    raw.qp_type = IBV_QPT_RAW_PACKET;
    raw.cap = {1, 1, 1, 1, 0};
    EXPECT_EQ(ibv_create_qp(domain, &raw), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  const std::vector<std::string> told = lines();
  for (const char* const feature : {"counters (ibv_create_counters), which this device lacks: `fairlead top`",
                                    "work queues and RSS (ibv_create_wq)", "dmabuf", "moderation", "raw packet"}) {
    EXPECT_EQ(std::ranges::count_if(told, [&](const std::string& line) { return line.contains(feature); }), 1)
        << feature;
  }
  EXPECT_EQ(ibv_destroy_cq(queue), 0);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

TEST_F(AbsentFeatures, OfFlowsAreNamed) {
  ASSERT_NE(context_, nullptr);
  const End end(open_for_test(0));
  ibv_flow_attr rule{};
  EXPECT_EQ(ibv_create_flow(end.pair, &rule), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_THAT(lines(), Contains(HasSubstr("flow steering (ibv_create_flow)")));
}

TEST_F(AbsentFeatures, OfOtherProcessesAreNamed) {
  ASSERT_NE(context_, nullptr);
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(ibv_import_device(file), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_THAT(lines(), Contains(HasSubstr("a device of another process (ibv_import_device)")));
  ibv_xrcd_init_attr domain{
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = file, .oflags = O_RDONLY};
  EXPECT_EQ(ibv_open_xrcd(context_, &domain), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_THAT(lines(), Contains(HasSubstr("an XRC domain that this process has not created")));
  ::close(file);
}

TEST_F(AbsentFeatures, OfQueuePairsAndQueuesAreNamed) {
  ASSERT_NE(context_, nullptr);
  const End end(open_for_test(0));
  ibv_srq_init_attr_ex tags{};
  tags.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  tags.srq_type = IBV_SRQT_TM;
  tags.attr = {1, 1, 0};
  tags.pd = end.domain;
  EXPECT_EQ(ibv_create_srq_ex(end.context, &tags), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_THAT(lines(), Contains(HasSubstr("tag matching (IBV_SRQT_TM)")));
  ibv_qp_rate_limit_attr pacing{};
  EXPECT_EQ(ibv_modify_qp_rate_limit(end.pair, &pacing), EOPNOTSUPP);
  EXPECT_THAT(lines(), Contains(HasSubstr("packet pacing (ibv_modify_qp_rate_limit)")));
}

// An errno alone does not tell which of many attributes was wrong.
TEST_F(AbsentFeatures, OfExtendedQueuePairsAreNamed) {
  ASSERT_NE(context_, nullptr);
  const End end(open_for_test(0), {.has_shared = true});
  struct {
    const char* line;
    int error;
    void (*ask)(ibv_qp_init_attr_ex&);
  } const rows[] = {
      {"segmentation offload", EOPNOTSUPP, [](auto& to) { to.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER; }},
      {"attributes of queue pairs besides PD", EOPNOTSUPP, [](auto& to) { to.comp_mask |= 1U << 20; }},
      {"creation flags of queue pairs", EOPNOTSUPP,
       [](auto& to) {
         to.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
         to.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
       }},
      {"posting calls that a queue pair of its type lacks", EOPNOTSUPP,
       [](auto& to) {
         to.qp_type = IBV_QPT_UD;
         to.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
         to.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
       }},
      {"queue pairs of a vendor's type", EOPNOTSUPP, [](auto& to) { to.qp_type = IBV_QPT_DRIVER; }},
      {"a protection domain is missing: set pd, and PD", EINVAL, [](auto& to) { to.comp_mask = 0; }},
      {"IBV_QPT_XRC_RECV needs an XRC domain: create it with", EINVAL, [](auto& to) { to.qp_type = IBV_QPT_XRC_RECV; }},
      {"an XRC target needs an XRC domain", EINVAL,
       [](auto& to) {
         to.qp_type = IBV_QPT_XRC_RECV;
         to.comp_mask = IBV_QP_INIT_ATTR_XRCD;
       }},
      {"pd is no protection domain", EINVAL, [](auto& to) { to.pd = nullptr; }},
      {"send_cq or recv_cq is no completion queue", EINVAL, [](auto& to) { to.recv_cq = nullptr; }},
      {"capacity beyond the device's limits: at most", EINVAL, [](auto& to) { to.cap.max_send_sge = 1000; }},
      {"UC has no shared receive queue", EOPNOTSUPP, [](auto& to) { to.qp_type = IBV_QPT_UC; }},
  };
  for (const auto& row : rows) {
    for (int i = 0; i < 2; ++i) {
      ibv_qp_init_attr_ex attributes{};
      attributes.send_cq = attributes.recv_cq = end.queue;
      attributes.cap = {1, 1, 1, 1, 0};
      attributes.qp_type = IBV_QPT_RC;
      attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
      attributes.pd = end.domain;
      row.ask(attributes);
      if (attributes.qp_type == IBV_QPT_UC) attributes.srq = end.shared;
      EXPECT_EQ(ibv_create_qp_ex(end.context, &attributes), nullptr) << row.line;
      EXPECT_EQ(errno, row.error) << row.line;
    }
    const std::vector<std::string> told = lines();
    EXPECT_EQ(std::ranges::count_if(told, [&](const std::string& line) { return line.contains(row.line); }), 1)
        << row.line;
  }
}

// A host engine lacks more than an engine in the process.
TEST_F(AbsentFeatures, OfAnEngineAreNamedWithItsReason) {
  const Error error{Status::not_supported, EOPNOTSUPP, "no such thing here: do without"};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(refuse(error), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(fail(Error{Status::invalid, EINVAL, "a mistake of the program"}), EINVAL);
  EXPECT_THAT(lines(), testing::ElementsAre("no such thing here: do without"));
}

// Programs store an alternate path and wait for an event that never comes.
TEST_F(AbsentFeatures, OfPathMigrationAreNamed) {
  ASSERT_NE(context_, nullptr);
  TwoEnds ends(Apart::same_device);
  connect(ends.a, ends.b);
  EXPECT_THAT(lines(), testing::Not(Contains(HasSubstr("path migration"))));
  ibv_qp_attr attributes = attributes_of(ends.b, {});
  attributes.alt_ah_attr = attributes.ah_attr;
  attributes.alt_port_num = 1;
  attributes.path_mig_state = IBV_MIG_REARM;
  EXPECT_EQ(ibv_modify_qp(ends.a.pair, &attributes, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
  EXPECT_THAT(lines(), Contains(HasSubstr("path migration (IBV_QP_ALT_PATH, IBV_MIG_REARM)")));
}

TEST_F(AbsentFeatures, OfXrcTargetsOfOtherProcessesAreNamed) {
  ASSERT_NE(context_, nullptr);
  ibv_xrcd_init_attr alone{.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
  ibv_xrcd* const domain = ibv_open_xrcd(context_, &alone);
  ASSERT_NE(domain, nullptr);
  ibv_qp_open_attr target{};
  target.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  target.qp_num = 99;
  target.xrcd = domain;
  target.qp_type = IBV_QPT_XRC_RECV;
  EXPECT_EQ(ibv_open_qp(context_, &target), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_THAT(lines(), Contains(HasSubstr("those of other processes are in their engines")));
  EXPECT_EQ(ibv_close_xrcd(domain), 0);
}

// libfabric finds out in this way how much may be inlined.
TEST_F(AbsentFeatures, AttemptsToInlineMoreAreNotNamed) {
  ASSERT_NE(context_, nullptr);
  const End end(open_for_test(0));
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = end.queue;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {1, 1, 1, 1, 1025};
  EXPECT_EQ(ibv_create_qp(end.domain, &attributes), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_THAT(lines(), testing::Not(Contains(HasSubstr("capacity"))));
}

// Programs that were built with a later version of libibverbs know these numbers.
TEST_F(AbsentFeatures, OfLaterVersionsAreNamed) {
  ASSERT_NE(context_, nullptr);
  constexpr int kFlushGlobal = 1 << 8;
  const End end(open_for_test(0));
  std::array<std::byte, 64> memory{};
  EXPECT_EQ(ibv_reg_mr(end.domain, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | kFlushGlobal), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_THAT(lines(), Contains(HasSubstr("FLUSH (IBV_WR_FLUSH, IBV_ACCESS_FLUSH_*)")));
}

}  // namespace
}  // namespace fairlead::ibverbs
