#include "doors/ibverbs/fail_pair.hpp"

#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

TEST(FailPair, FlushesTheReceivesOfAPairThatIsConnectedToThisPeerOnly) {
  TwoEnds ends(Apart::same_device);
  const Identity& device = identities().front();
  const std::uint32_t number = ends.a.pair->qp_num, peer = ends.b.pair->qp_num;
  EXPECT_FALSE(fail_pair(device, number, peer)) << "not connected yet";
  connect(ends.a, ends.b);
  connect(ends.b, ends.a);
  ASSERT_EQ(ends.a.receive(7, ends.a.sge(0, 64)), 0);
  EXPECT_FALSE(fail_pair(device, number, peer + 1)) << "connected to another by now";
  EXPECT_FALSE(fail_pair(device, 1, peer));
  EXPECT_EQ(ends.a.state(), IBV_QPS_RTS);
  EXPECT_TRUE(fail_pair(device, number, peer));
  EXPECT_EQ(ends.a.state(), IBV_QPS_ERR);
  EXPECT_EQ(ends.a.pair->state, IBV_QPS_ERR);
  const ibv_wc flushed = ends.one_at_a();
  EXPECT_EQ(flushed.wr_id, 7U);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace
}  // namespace fairlead::ibverbs
