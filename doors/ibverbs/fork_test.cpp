// The child of a fork has copies of all objects, but no engine behind them.
#include "base/child_for_tests.hpp"
#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

TEST(ForkedChild, GetsAnErrorInsteadOfInventedAnswers) {
  const End end(open_for_test(0));
  ibv_srq_init_attr one{.srq_context = nullptr, .attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0}};
  ibv_srq* const shared = ibv_create_srq(end.domain, &one);
  ASSERT_NE(shared, nullptr);
  const auto in_child = [&] {
    ibv_qp_attr pair{};
    EXPECT_EQ(ibv_query_qp(end.pair, &pair, IBV_QP_STATE, nullptr), EIO);
    ibv_srq_attr queue{};
    EXPECT_EQ(ibv_query_srq(shared, &queue), EIO);
    ibv_wc none;
    EXPECT_EQ(ibv_poll_cq(end.queue, 1, &none), -1);
    EXPECT_EQ(ibv_alloc_pd(end.context), nullptr);
    EXPECT_EQ(errno, EIO);
    // What a device is does not depend on the process.
    ibv_device_attr device{};
    EXPECT_EQ(ibv_query_device(end.context, &device), 0);
    EXPECT_NE(device.max_qp, 0);
    return testing::Test::HasFailure() ? 1 : 0;
  };
  EXPECT_EQ(base::exit_of_child(in_child), 0);
  EXPECT_EQ(ibv_destroy_srq(shared), 0);
}

}  // namespace
}  // namespace fairlead::ibverbs
