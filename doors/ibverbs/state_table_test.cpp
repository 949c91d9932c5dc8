// The state machine of queue pairs through ibv_modify_qp(), attribute by attribute, and what works in which state.

#include <map>

#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead::ibverbs {
namespace {

using Way = std::pair<ibv_qp_state, ibv_qp_state>;
struct Masks {
  int required = 0, allowed = 0;
};

// Derived from the specification, independently of the product's table.
std::map<Way, Masks> ways_of(ibv_qp_type type) {
  constexpr int kPath = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
  const bool is_rc = type == IBV_QPT_RC, is_ud = type == IBV_QPT_UD;
  const int running = IBV_QP_CUR_STATE | (is_ud ? IBV_QP_QKEY : kPath) | (is_rc ? IBV_QP_MIN_RNR_TIMER : 0);
  const int who = IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  std::map<Way, Masks> ways;
  for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; ++from) {
    ways[{static_cast<ibv_qp_state>(from), IBV_QPS_RESET}] = {};
    if (from != IBV_QPS_RESET) ways[{static_cast<ibv_qp_state>(from), IBV_QPS_ERR}] = {};
  }
  ways[{IBV_QPS_RESET, IBV_QPS_INIT}] = {who, 0};
  ways[{IBV_QPS_INIT, IBV_QPS_INIT}] = {0, who};
  ways[{IBV_QPS_INIT, IBV_QPS_RTR}] = {
      mask_to(type, IBV_QPS_RTR) & ~IBV_QP_STATE,
      IBV_QP_PKEY_INDEX | (is_ud ? IBV_QP_QKEY : IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS)};
  ways[{IBV_QPS_RTR, IBV_QPS_RTS}] = {mask_to(type, IBV_QPS_RTS) & ~IBV_QP_STATE, running};
  ways[{IBV_QPS_RTS, IBV_QPS_RTS}] = {0, running};
  ways[{IBV_QPS_RTS, IBV_QPS_SQD}] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY};
  ways[{IBV_QPS_SQD, IBV_QPS_RTS}] = {0, running};
  ways[{IBV_QPS_SQD, IBV_QPS_SQD}] = {
      0, is_ud ? IBV_QP_PKEY_INDEX | IBV_QP_QKEY
               : IBV_QP_AV | IBV_QP_PKEY_INDEX | kPath |
                     (is_rc ? IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                            : 0)};
  if (!is_rc) ways[{IBV_QPS_SQE, IBV_QPS_RTS}] = {0, IBV_QP_CUR_STATE | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)};
  return ways;
}

class StateTable : public testing::TestWithParam<ibv_qp_type> {
 protected:
  StateTable() : ends_(Apart::same_device, {.type = GetParam()}, {.type = GetParam()}) {}

  void bring_to(ibv_qp_state wanted) {
    if (end().pair->state == wanted && end().state() == wanted) return;
    ibv_qp_attr attributes{};
    ASSERT_EQ(ibv_modify_qp(end().pair, &attributes, IBV_QP_STATE), 0);
    connect(end(), ends_.b, wanted);
    if (wanted == IBV_QPS_SQD || wanted == IBV_QPS_ERR) {
      ASSERT_EQ(move_to(end(), {}, wanted), 0);
    }
    if (wanted == IBV_QPS_SQE) fail_a_send();
    ASSERT_EQ(end().state(), wanted);
  }
  // Only a failure leads to this state.
  void fail_a_send() {
    Request wrong(1, IBV_WR_SEND, ends_, {end().at(0), 8, 0});
    ibv_ah_attr vector = attributes_of(ends_.b, {}).ah_attr;
    ibv_ah* to = ibv_create_ah(end().domain, &vector);
    if (GetParam() == IBV_QPT_UD) wrong.wr.ud = {.ah = to, .remote_qpn = ends_.b.pair->qp_num, .remote_qkey = 0};
    ASSERT_EQ(wrong.post(end()), 0);
    ASSERT_EQ(ends_.one_at_a().status, IBV_WC_LOC_PROT_ERR);
    ASSERT_EQ(ibv_destroy_ah(to), 0);
  }

  int try_move(const Way& way, int mask) {
    ibv_qp_attr attributes = attributes_of(ends_.b, {});
    attributes.cur_qp_state = way.first;
    attributes.qp_state = way.second;
    errno = 0;
    const int code = ibv_modify_qp(end().pair, &attributes, mask | IBV_QP_STATE);
    EXPECT_EQ(code == 0 ? 0 : errno, code);
    return code;
  }

  End& end() { return ends_.a; }

  TwoEnds ends_;
};
INSTANTIATE_TEST_SUITE_P(, StateTable, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD), [](const auto& one) {
  return one.param == IBV_QPT_RC ? "RC" : one.param == IBV_QPT_UC ? "UC" : "UD";
});

TEST_P(StateTable, TakesWhatItSaysAndNothingElse) {
  const auto ways = ways_of(GetParam());
  const int last = GetParam() == IBV_QPT_RC ? IBV_QPS_SQD : IBV_QPS_SQE;
  for (int from_number = IBV_QPS_RESET; from_number <= IBV_QPS_ERR; ++from_number) {
    if (from_number > last && from_number != IBV_QPS_ERR) continue;
    for (int to_number = IBV_QPS_RESET; to_number <= IBV_QPS_ERR; ++to_number) {
      const Way way{static_cast<ibv_qp_state>(from_number), static_cast<ibv_qp_state>(to_number)};
      SCOPED_TRACE(testing::Message() << way.first << " -> " << way.second);
      bring_to(way.first);
      const auto found = ways.find(way);
      if (found == ways.end()) {
        EXPECT_EQ(try_move(way, 0), EINVAL);
        EXPECT_EQ(end().state(), way.first);
        continue;
      }
      const auto [required, allowed] = found->second;
      for (int bit = 1; bit < 26; ++bit) {
        const int one = 1 << bit;
        SCOPED_TRACE(testing::Message() << "bit " << bit);
        bring_to(way.first);
        const bool is_required = (required & one) != 0;
        const bool works = (allowed & one) != 0;
        EXPECT_EQ(try_move(way, is_required ? required & ~one : required | one), works ? 0 : EINVAL);
        EXPECT_EQ(end().state(), works ? way.second : way.first);
      }
      bring_to(way.first);
      EXPECT_EQ(try_move(way, required), 0);
      EXPECT_EQ(end().pair->state, way.second);
    }
  }
}

TEST_P(StateTable, PostsAndArrivalsFollowTheState) {
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
    SCOPED_TRACE(state);
    bring_to(state);
    EXPECT_EQ(end().receive(1, end().sge(0, 64)), state == IBV_QPS_RESET ? EINVAL : 0);
    Request request(2, IBV_WR_SEND, ends_);
    ibv_ah_attr vector = attributes_of(ends_.b, {}).ah_attr;
    ibv_ah* to = ibv_create_ah(end().domain, &vector);
    request.wr.ud = {.ah = to, .remote_qpn = 0x777, .remote_qkey = 0};
    EXPECT_EQ(request.post(end()), state < IBV_QPS_RTS ? EINVAL : 0);
    EXPECT_EQ(ibv_destroy_ah(to), 0);
    ibv_wc some[4];
    if (state == IBV_QPS_ERR) {
      const auto flushed = ends_.at_a(2);
      ASSERT_EQ(flushed.size(), 2u);
      EXPECT_EQ(flushed[0].status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(flushed[1].status, IBV_WC_WR_FLUSH_ERR);
    } else if (state == IBV_QPS_SQD) {
      EXPECT_EQ(ibv_poll_cq(end().queue, 4, some), 0) << "what is posted in SQD waits";
    }
    bring_to(IBV_QPS_RESET);
    EXPECT_EQ(ibv_poll_cq(end().queue, 4, some), 0) << "a reset leaves no completions";
    ends_.a.got.clear();
  }
}

TEST(StateValues, OutOfRangeAreRefusedAndChangeNothing) {
  TwoEnds ends(Apart::same_device);
  auto& [a, b] = ends;
  ASSERT_NO_FATAL_FAILURE(connect(a, b, IBV_QPS_INIT));
  const auto expect_refused = [&](ibv_qp_state to, auto&& change) {
    ibv_qp_attr attributes = attributes_of(b, {});
    change(attributes);
    EXPECT_EQ(move_to(a, attributes, to), EINVAL);
    EXPECT_EQ(a.state(), to == IBV_QPS_RTR ? IBV_QPS_INIT : IBV_QPS_RTR);
  };
  expect_refused(IBV_QPS_RTR, [](ibv_qp_attr& one) { one.path_mtu = static_cast<ibv_mtu>(6); });
  expect_refused(IBV_QPS_RTR, [](ibv_qp_attr& one) { one.rq_psn = 1U << 24; });
  expect_refused(IBV_QPS_RTR, [](ibv_qp_attr& one) { one.dest_qp_num = 1U << 24; });
  expect_refused(IBV_QPS_RTR, [](ibv_qp_attr& one) { one.max_dest_rd_atomic = 17; });
  expect_refused(IBV_QPS_RTR, [](ibv_qp_attr& one) { one.min_rnr_timer = 32; });
  expect_refused(IBV_QPS_RTR, [](ibv_qp_attr& one) { one.ah_attr.is_global = 0; });
  expect_refused(IBV_QPS_RTR, [](ibv_qp_attr& one) { one.ah_attr.port_num = 2; });
  ASSERT_EQ(move_to(a, attributes_of(b, {}), IBV_QPS_RTR), 0);
  expect_refused(IBV_QPS_RTS, [](ibv_qp_attr& one) { one.max_rd_atomic = 17; });
  expect_refused(IBV_QPS_RTS, [](ibv_qp_attr& one) { one.timeout = 32; });
  expect_refused(IBV_QPS_RTS, [](ibv_qp_attr& one) { one.retry_cnt = 8; });
  expect_refused(IBV_QPS_RTS, [](ibv_qp_attr& one) { one.rnr_retry = 8; });
  expect_refused(IBV_QPS_RTS, [](ibv_qp_attr& one) { one.sq_psn = 1U << 24; });
  ibv_qp_attr wrong{};
  wrong.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(a.pair, &wrong, IBV_QP_CUR_STATE), EINVAL);
  ASSERT_EQ(move_to(a, attributes_of(b, {}), IBV_QPS_RTS), 0);
  ibv_qp_attr all{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(a.pair, &all, ~0, &init), 0);
  EXPECT_EQ(all.dest_qp_num, b.pair->qp_num);
  EXPECT_EQ(all.rq_psn, kFirstPsn);
  EXPECT_EQ(all.timeout, 17);
  EXPECT_EQ(all.max_rd_atomic, 4);
  EXPECT_EQ(init.send_cq, a.queue);
  EXPECT_GE(init.cap.max_send_wr, 32u);
}

}  // namespace
}  // namespace fairlead::ibverbs
