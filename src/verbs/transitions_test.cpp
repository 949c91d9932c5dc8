// The state machine of queue pairs, attribute by attribute.

#include <algorithm>
#include <array>
#include <bit>

#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

using namespace qp_mask;

struct Want {
  QpState from, to;
  std::uint32_t required, optional;
};

constexpr std::uint32_t kRcRunning = cur_state | alt_path | access_flags | min_rnr_timer | path_mig_state;
constexpr std::uint32_t kUcRunning = cur_state | alt_path | access_flags | path_mig_state;
constexpr std::uint32_t kUdRunning = cur_state | qkey;

// Derived from the specification, independently of the product's table.
std::vector<Want> wants(QpType type) {
  using enum QpState;
  std::vector<Want> all;
  for (const QpState from : {reset, init, rtr, rts, sqd, err}) {
    all.push_back({from, reset, 0, 0});
    if (from != reset) all.push_back({from, err, 0, 0});
  }
  all.push_back({rts, sqd, 0, en_sqd_async_notify});
  switch (type) {
    case QpType::rc:
      all.push_back({reset, init, pkey_index | port | access_flags, 0});
      all.push_back({init, init, 0, pkey_index | port | access_flags});
      all.push_back({init, rtr, av | path_mtu | dest_qp_num | rq_psn | max_dest_rd_atomic | min_rnr_timer,
                     alt_path | access_flags | pkey_index});
      all.push_back({rtr, rts, timeout | retry_cnt | rnr_retry | sq_psn | max_rd_atomic, kRcRunning});
      all.push_back({rts, rts, 0, kRcRunning});
      all.push_back({sqd, rts, 0, kRcRunning});
      all.push_back({sqd, sqd, 0,
                     port | av | timeout | retry_cnt | rnr_retry | max_rd_atomic | max_dest_rd_atomic | alt_path |
                         access_flags | pkey_index | min_rnr_timer | path_mig_state});
      break;
    case QpType::uc:
      all.push_back({reset, init, pkey_index | port | access_flags, 0});
      all.push_back({init, init, 0, pkey_index | port | access_flags});
      all.push_back({init, rtr, av | path_mtu | dest_qp_num | rq_psn, alt_path | access_flags | pkey_index});
      all.push_back({rtr, rts, sq_psn, kUcRunning});
      all.push_back({rts, rts, 0, kUcRunning});
      all.push_back({sqd, rts, 0, kUcRunning});
      all.push_back({sqd, sqd, 0, av | alt_path | access_flags | pkey_index | path_mig_state});
      break;
    case QpType::ud:
      all.push_back({reset, init, pkey_index | port | qkey, 0});
      all.push_back({init, init, 0, pkey_index | port | qkey});
      all.push_back({init, rtr, 0, pkey_index | qkey});
      all.push_back({rtr, rts, sq_psn, kUdRunning});
      all.push_back({rts, rts, 0, kUdRunning});
      all.push_back({sqd, rts, 0, kUdRunning});
      all.push_back({sqd, sqd, 0, pkey_index | qkey});
      break;
    case QpType::xrc_send:
      all.push_back({reset, init, pkey_index | port | access_flags, 0});
      all.push_back({init, init, 0, pkey_index | port | access_flags});
      all.push_back({init, rtr, av | path_mtu | dest_qp_num | rq_psn, alt_path | access_flags | pkey_index});
      all.push_back({rtr, rts, timeout | retry_cnt | rnr_retry | sq_psn | max_rd_atomic, kUcRunning});
      all.push_back({rts, rts, 0, kUcRunning});
      all.push_back({sqd, rts, 0, kUcRunning});
      all.push_back({sqd, sqd, 0,
                     port | av | timeout | retry_cnt | rnr_retry | max_rd_atomic | alt_path | access_flags |
                         pkey_index | path_mig_state});
      break;
    case QpType::xrc_recv:
      all.push_back({reset, init, pkey_index | port | access_flags, 0});
      all.push_back({init, init, 0, pkey_index | port | access_flags});
      all.push_back({init, rtr, av | path_mtu | dest_qp_num | rq_psn | max_dest_rd_atomic | min_rnr_timer,
                     alt_path | access_flags | pkey_index});
      all.push_back({rtr, rts, timeout | sq_psn, kRcRunning});
      all.push_back({rts, rts, 0, kRcRunning});
      all.push_back({sqd, rts, 0, kRcRunning});
      all.push_back({sqd, sqd, 0,
                     port | av | timeout | max_dest_rd_atomic | alt_path | access_flags | pkey_index | min_rnr_timer |
                         path_mig_state});
      break;
  }
  return all;
}

class Transitions : public ::testing::TestWithParam<QpType> {
 protected:
  Transitions() : side_(1, Road::self), pair_(std::move(*make_pair_at(side_, GetParam()))) {
    attributes_ = attributes_for({}, side_.device, pair_.number(), 7, 7);
  }

  void bring_to(QpState wanted) {
    ASSERT_TRUE(pair_.modify({.state = QpState::reset}, state));
    if (wanted == QpState::reset) return;
    const bool is_beyond = wanted > QpState::rts;
    move_up(pair_, attributes_, is_beyond ? QpState::rts : wanted);
    if (is_beyond) move(pair_, attributes_, wanted);
    ASSERT_EQ(pair_.state(), wanted);
  }

  Result<> try_move(QpState from, QpState to, std::uint32_t mask) {
    attributes_.state = to;
    attributes_.cur_state = from;
    return pair_.modify(attributes_, mask | state);
  }

  Side side_;
  QueuePair pair_;
  QpAttributes attributes_;
};
std::string name_of_type(const ::testing::TestParamInfo<QpType>& one) {
  constexpr const char* kNames[] = {"", "", "rc", "uc", "ud", "", "", "", "", "xrc_send", "xrc_recv"};
  return kNames[static_cast<std::size_t>(one.param)];
}
INSTANTIATE_TEST_SUITE_P(, Transitions,
                         ::testing::Values(QpType::rc, QpType::uc, QpType::ud, QpType::xrc_send, QpType::xrc_recv),
                         name_of_type);

TEST_P(Transitions, TakeWhatTheTableSaysAndNothingElse) {
  using enum QpState;
  const auto table = wants(GetParam());
  for (const QpState from : {reset, init, rtr, rts, sqd, err}) {
    for (const QpState to : {reset, init, rtr, rts, sqd, sqe, err}) {
      const auto found =
          std::ranges::find_if(table, [&](const Want& want) { return want.from == from && want.to == to; });
      bring_to(from);
      if (found == table.end()) {
        const auto refused = try_move(from, to, 0);
        ASSERT_FALSE(refused) << int(from) << " -> " << int(to);
        EXPECT_EQ(refused.error().system_errno, EINVAL);
        EXPECT_EQ(pair_.state(), from);
        continue;
      }
      for (std::uint32_t left = found->required; left != 0; left &= left - 1) {
        const std::uint32_t one = 1U << std::countr_zero(left);
        EXPECT_FALSE(try_move(from, to, found->required & ~one)) << int(from) << " -> " << int(to) << " bit " << one;
        EXPECT_EQ(pair_.state(), from);
      }
      for (std::uint32_t bit = 1; bit < 21; ++bit) {
        const std::uint32_t one = 1U << bit;
        if ((found->required & one) != 0) continue;
        bring_to(from);
        const bool is_allowed = (found->optional & one) != 0;
        EXPECT_EQ(try_move(from, to, found->required | one).has_value(), is_allowed)
            << int(from) << " -> " << int(to) << " bit " << bit;
        EXPECT_EQ(pair_.state(), is_allowed ? to : from);
      }
      bring_to(from);
      EXPECT_TRUE(try_move(from, to, found->required)) << int(from) << " -> " << int(to);
      EXPECT_EQ(pair_.state(), to);
    }
  }
}

TEST_P(Transitions, RefuseValuesOutOfRangeAndChangeNothing) {
  bring_to(QpState::init);
  QpAttributes wrong = attributes_;
  wrong.port_num = 2;
  EXPECT_FALSE(pair_.modify(wrong, port));
  wrong = attributes_;
  wrong.pkey_index = 1;
  EXPECT_FALSE(pair_.modify(wrong, pkey_index));
  EXPECT_EQ(pair_.query().port_num, 1);
  if (GetParam() == QpType::ud) return;
  const std::uint32_t mask = mask_for(GetParam(), QpState::rtr);
  const auto expect_refused = [&](auto&& change) {
    wrong = attributes_;
    wrong.state = QpState::rtr;
    change(wrong);
    const auto refused = pair_.modify(wrong, mask);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().system_errno, EINVAL);
    EXPECT_EQ(pair_.state(), QpState::init);
  };
  expect_refused([](QpAttributes& a) { a.av.is_global = false; });  // RoCE requires a GRH
  expect_refused([](QpAttributes& a) { a.av.sgid_index = 1; });
  expect_refused([](QpAttributes& a) { a.av.port_num = 2; });
  expect_refused([](QpAttributes& a) { a.path_mtu = static_cast<Mtu>(6); });
  expect_refused([](QpAttributes& a) { a.rq_psn = 1U << 24; });
  expect_refused([](QpAttributes& a) { a.dest_qp_num = 1U << 24; });
  if (GetParam() == QpType::rc) {
    expect_refused([](QpAttributes& a) { a.max_dest_rd_atomic = 17; });
    expect_refused([](QpAttributes& a) { a.min_rnr_timer = 32; });
  }
}

TEST_P(Transitions, PostingFollowsTheState) {
  using enum QpState;
  const Sge to = side_.sge(0, 100);
  if (GetParam() == QpType::xrc_send || GetParam() == QpType::xrc_recv) {
    for (const QpState at : {reset, init, rtr, rts, sqd, err}) {
      bring_to(at);
      EXPECT_EQ(pair_.post_receive({.id = 2, .sges = {&to, 1}}), EINVAL) << "receives are the shared queues'";
    }
    return;
  }
  const AddressVector self{.dgid = side_.device.gid, .is_global = true};
  for (const QpState at : {reset, init, rtr, rts, sqd, err}) {
    bring_to(at);
    const int send = pair_.post_send({.id = 1, .sges = {}, .to = &self, .remote_qpn = 77, .remote_qkey = kQueueKey});
    EXPECT_EQ(send, at < rts ? EINVAL : 0) << int(at);
    const int receive = pair_.post_receive({.id = 2, .sges = {&to, 1}});
    EXPECT_EQ(receive, at == reset ? EINVAL : 0) << int(at);
  }
  // Both were flushed in ERR; requests dropped by the resets before left no completions.
  std::array<WorkCompletion, 8> some;
  int flushed = 0;
  for (int i = 0; i < 100; ++i) {
    const int count = side_.queue.poll(some);
    for (const WorkCompletion& one : std::span(some).first(static_cast<std::size_t>(count))) {
      EXPECT_EQ(one.status, WcStatus::wr_flush_err);
      ++flushed;
    }
  }
  EXPECT_EQ(flushed, 2);
}

TEST_P(Transitions, QueryTellsWhatWasSet) {
  EXPECT_EQ(pair_.query().state, QpState::reset);
  bring_to(QpState::rts);
  const QpAttributes now = pair_.query();
  EXPECT_EQ(now.state, QpState::rts);
  EXPECT_EQ(now.cur_state, QpState::rts);
  EXPECT_EQ(now.sq_psn, 7u);
  EXPECT_EQ(now.port_num, 1);
  if (GetParam() == QpType::ud) {
    EXPECT_EQ(now.qkey, kQueueKey);
    return;
  }
  EXPECT_EQ(now.dest_qp_num, pair_.number());
  EXPECT_EQ(now.av.dgid, side_.device.gid);
  EXPECT_EQ(now.path_mtu, Mtu::bytes_1024);
}

class SendQueueDrained : public ::testing::TestWithParam<Road> {};
INSTANTIATE_TEST_SUITE_P(, SendQueueDrained,
                         ::testing::ValuesIn(roads({Road::self, Road::shm, Road::udp, Road::host, Road::hosts})),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(SendQueueDrained, IsToldWhenWhatWasBegunHasEnded) {
  Connected c(GetParam());
  const Sge to = c.b.sge(0, 10);
  const std::uint64_t before = c.counted_at_b("qp.receiver_not_ready");
  ASSERT_EQ(c.pa.post_send({.id = 1, .sges = {}, .flags = send_flags::signaled}), 0);  // waits for a receive
  QpAttributes attributes;
  attributes.state = QpState::sqd;
  attributes.en_sqd_async_notify = true;
  ASSERT_TRUE(c.pa.modify(attributes, state | en_sqd_async_notify));
  EXPECT_TRUE(c.pa.query().is_sq_draining);
  // It was told to retry for lack of a receive, but it has begun.
  ASSERT_TRUE(c.wait_until_counted_at_b("qp.receiver_not_ready", before));
  EXPECT_TRUE(Connected::events(c.a).empty());
  ASSERT_EQ(c.pa.post_send({.id = 2, .sges = {}, .flags = send_flags::signaled}), 0);  // waits
  ASSERT_EQ(c.pb.post_receive({.id = 1, .sges = {&to, 1}}), 0);
  ASSERT_EQ(c.pb.post_receive({.id = 2, .sges = {&to, 1}}), 0);
  EXPECT_EQ(c.one_at_a().wr_id, 1u);
  EXPECT_EQ(Connected::next_events(c.a), std::vector{AsyncEventType::sq_drained});
  EXPECT_FALSE(c.pa.query().is_sq_draining);
  WorkCompletion none;
  EXPECT_EQ(c.a.queue.poll({&none, 1}), 0);
  attributes.state = QpState::rts;
  ASSERT_TRUE(c.pa.modify(attributes, state));
  EXPECT_EQ(c.one_at_a().wr_id, 2u);
}

}  // namespace
}  // namespace fairlead::verbs
