// Motr's tests of its generic layer, by their names (docs/motr.md), over a fake transport that does what the test says.

#include <array>

#include "doors/motr_net/lists.hpp"
#include "doors/motr_net/machine_for_tests.hpp"
#include "doors/motr_net/refuse.hpp"

namespace fairlead::motr {
namespace {

struct Fake {
  int dom_init = 0, tm_init = 0, tm_stop = 0, buf_register = 0, buf_add = 0;  // results of the fake's operations
  int added = 0, deleted = 0, registered = 0;
  void (*during_stop)(m0_net_transfer_mc* tm) = nullptr;
} fake;

int fake_end_point(m0_net_end_point** epp, m0_net_transfer_mc* tm, const char*) {
  const auto release = [](m0_ref* ref) {
    auto* const ep = reinterpret_cast<m0_net_end_point*>(ref);
    --ep->nep_tm->ntm_end_points.tl_length;
    delete ep;
  };
  ++tm->ntm_end_points.tl_length;
  *epp = new m0_net_end_point{
      .nep_ref = {1, release}, .nep_tm = tm, .nep_next = nullptr, .nep_addr = "fake", .nep_xprt_private = nullptr};
  return 0;
}

constexpr m0_net_xprt_ops kFakeOperations{
    .xo_dom_init = [](const m0_net_xprt*, m0_net_domain*) { return fake.dom_init; },
    .xo_dom_fini = [](m0_net_domain*) {},
    .xo_get_max_buffer_size = [](const m0_net_domain*) -> m0_bcount_t { return 1024; },
    .xo_get_max_buffer_segment_size = [](const m0_net_domain*) -> m0_bcount_t { return 256; },
    .xo_get_max_buffer_segments = [](const m0_net_domain*) -> std::int32_t { return 4; },
    .xo_get_max_buffer_desc_size = [](const m0_net_domain*) -> m0_bcount_t { return 7; },
    .xo_end_point_create = fake_end_point,
    .xo_buf_register = [](m0_net_buffer*) { return fake.registered++, fake.buf_register; },
    .xo_buf_deregister = [](m0_net_buffer*) { --fake.registered; },
    .xo_buf_add = [](m0_net_buffer*) { return fake.added++, fake.buf_add; },
    .xo_buf_del = [](m0_net_buffer*) { ++fake.deleted; },
    .xo_tm_init = [](m0_net_transfer_mc*) { return fake.tm_init; },
    .xo_tm_start = [](m0_net_transfer_mc*, const char*) { return 0; },
    .xo_tm_stop =
        [](m0_net_transfer_mc* tm, bool) {
          const Unlocked unlock(tm->ntm_mutex);
          if (fake.during_stop != nullptr) fake.during_stop(tm);
          return fake.tm_stop;
        },
    .xo_tm_fini = [](m0_net_transfer_mc*) {},
    .xo_tm_confine = nullptr,
    .xo_bev_deliver_sync = nullptr,
    .xo_bev_deliver_all = nullptr,
    .xo_bev_pending = nullptr,
    .xo_bev_notify = nullptr,
    .xo_rpc_max_seg_size = nullptr,
    .xo_rpc_max_segs_nr = nullptr,
    .xo_rpc_max_msg_size = nullptr,
    .xo_rpc_max_recv_msgs = nullptr};
constexpr m0_net_xprt kFake{"fake", &kFakeOperations};

void post_state(m0_net_transfer_mc& tm, m0_net_tm_state state, m0_net_end_point* ep = nullptr) {
  const m0_net_tm_event ev{M0_NET_TEV_STATE_CHANGE, &tm, m0_time_now(), 0, state, ep, nullptr};
  std::jthread([&] { m0_net_tm_event_post(&ev); });  // from another thread, as transports do
}
void post(m0_net_buffer& buf, std::int32_t status, m0_bcount_t length = 0) {
  const m0_net_buffer_event ev{&buf, m0_time_now(), status, length, 0, nullptr};
  std::jthread([&] { m0_net_buffer_event_post(&ev); });
}

class FakeTest : public ::testing::Test {
 protected:
  FakeTest() {
    fake = {};
    EXPECT_EQ(m0_net_domain_init(&dom_, &kFake), 0);
  }
  ~FakeTest() override { m0_net_domain_fini(&dom_); }
  void start(TestMachine& machine) {
    EXPECT_EQ(m0_net_tm_start(&machine, "fake"), 0);
    EXPECT_EQ(machine.ntm_state, M0_NET_TM_STARTING);
    m0_net_end_point* own = nullptr;
    {
      const Locked lock(machine.ntm_mutex);
      fake_end_point(&own, &machine, "");
    }
    post_state(machine, M0_NET_TM_STARTED, own);
    EXPECT_EQ(machine.ntm_state, M0_NET_TM_STARTED);
  }
  void stop(TestMachine& machine) {
    EXPECT_EQ(m0_net_tm_stop(&machine, true), 0);
    EXPECT_EQ(machine.ntm_state, M0_NET_TM_STOPPING);
    post_state(machine, M0_NET_TM_STOPPED);
  }
  m0_net_domain dom_{};
  Told told_;
};

TEST_F(FakeTest, net_bulk_if) {
  m0_net_domain refused{};
  fake.dom_init = -EIO;
  EXPECT_EQ(m0_net_domain_init(&refused, &kFake), -EIO);
  EXPECT_EQ(refused.nd_xprt, nullptr);
  EXPECT_EQ(m0_net_domain_get_max_buffer_size(&dom_), 1024u);
  EXPECT_EQ(m0_net_domain_get_max_buffer_segment_size(&dom_), 256u);
  EXPECT_EQ(m0_net_domain_get_max_buffer_segments(&dom_), 4);
  EXPECT_EQ(m0_net_domain_get_max_buffer_desc_size(&dom_), 7u);
  EXPECT_EQ(m0_net_domain_rpc_max_seg_size(&dom_), 128u * 1024);
  EXPECT_EQ(m0_net_domain_rpc_max_recv_msgs(&dom_, 1), 1u);

  m0_net_transfer_mc silent{};
  EXPECT_EQ(m0_net_tm_init(&silent, &dom_), -EINVAL) << "without a callback";
  {
    TestMachine machine(dom_);
    EXPECT_EQ(m0_net_tm_confine(&machine, nullptr), -ENOSYS);
    EXPECT_EQ(m0_net_buffer_event_deliver_synchronously(&machine), -ENOSYS);
    EXPECT_TRUE(machine.ntm_bev_auto_deliver);
    EXPECT_EQ(machine.ntm_recv_queue_min_length, 2u);
    EXPECT_EQ(m0_net_tm_colour_get(&machine), M0_BUFFER_ANY_COLOUR);
    EXPECT_EQ(m0_net_tm_start(&machine, nullptr), -EINVAL);
    start(machine);
    m0_net_end_point* ep = nullptr;
    ASSERT_EQ(m0_net_end_point_create(&ep, &machine, "fake"), 0);
    m0_net_end_point_get(ep);
    m0_net_end_point_put(ep);

    TestBuffer buf(told_);
    fake.buf_register = -EFBIG;
    EXPECT_EQ(m0_net_buffer_register(&buf, &dom_), -EFBIG);
    EXPECT_EQ(buf.nb_flags, 0u);
    fake.buf_register = 0;
    buf.registered(dom_);
    fake.buf_add = -EMSGSIZE;
    EXPECT_EQ(buf.send(machine, ep, 10), -EMSGSIZE);
    EXPECT_EQ(buf.nb_flags, M0_NET_BUF_REGISTERED);
    EXPECT_EQ(ep->nep_ref.ref_cnt, 1);
    fake.buf_add = 0;
    buf.nb_timeout = 1;
    EXPECT_EQ(buf.send(machine, ep, 10), -ETIME);
    buf.nb_timeout = M0_TIME_NEVER;
    std::array<std::uint8_t, 3> bytes{1, 2, 3};
    m0_net_buf_desc given{3, bytes.data()};
    for (int queue = 0; queue < M0_NET_QT_NR; ++queue) {
      const auto type = static_cast<m0_net_queue_type>(queue);
      buf.nb_min_receive_size = 1;
      buf.nb_max_receive_msgs = 2;
      const bool is_active = type == M0_NET_QT_ACTIVE_BULK_RECV || type == M0_NET_QT_ACTIVE_BULK_SEND;
      if (is_active) {
        ASSERT_EQ(m0_net_desc_copy(&given, &buf.nb_desc), 0);
        EXPECT_EQ(buf.nb_desc.nbd_data[2], 3);
      }
      ASSERT_EQ(type == M0_NET_QT_MSG_SEND ? buf.send(machine, ep, 10) : buf.bulk(machine, type, 10), 0) << queue;
      EXPECT_TRUE(buf.is_queued());
      EXPECT_EQ(m0_net_tm_tlist_length(&machine.ntm_q[queue]), 1u);
      EXPECT_EQ(ep->nep_ref.ref_cnt, type == M0_NET_QT_MSG_SEND ? 2 : 1);
      if (type == M0_NET_QT_MSG_RECV) {  // stays queued once
        buf.nb_flags |= M0_NET_BUF_RETAIN;
        post(buf, 0, 7);
        EXPECT_TRUE(buf.is_queued());
        EXPECT_EQ(buf.nb_msgs_received, 1u);
      }
      EXPECT_TRUE(m0_net_buffer_del(&buf, &machine));
      post(buf, queue % 2 == 0 ? 0 : -ECANCELED, 5);
      EXPECT_FALSE(m0_net_buffer_del(&buf, &machine)) << "the completion has come first";
      EXPECT_EQ(buf.nb_flags, M0_NET_BUF_REGISTERED);
      EXPECT_EQ(ep->nep_ref.ref_cnt, 1);
      m0_net_desc_free(&buf.nb_desc);
      const m0_net_qstats figures = machine.figures(type, true);
      EXPECT_EQ(figures.nqs_num_adds, 1u);
      EXPECT_EQ(figures.nqs_num_dels, 1u);
      EXPECT_EQ(figures.nqs_num_f_events, queue % 2 == 0 ? 0u : 1u);
      EXPECT_EQ(figures.nqs_num_s_events, queue == 0 ? 2u : queue % 2 == 0 ? 1u : 0u);
      EXPECT_EQ(figures.nqs_total_bytes, queue == 0 ? 12u : queue % 2 == 0 ? 5u : 0u);
      EXPECT_EQ(machine.figures(type).nqs_num_adds, 0u);
    }
    EXPECT_EQ(fake.deleted, 6);
    m0_net_end_point_put(ep);
    fake.tm_stop = -EIO;
    EXPECT_EQ(m0_net_tm_stop(&machine, false), -EIO);
    EXPECT_EQ(machine.ntm_state, M0_NET_TM_STARTED);
    fake.tm_stop = 0;
    stop(machine);
  }
  EXPECT_EQ(fake.registered, 1) << "only the refused one is not given back";
  m0_net_buf_desc empty{}, copy{};
  EXPECT_EQ(m0_net_desc_copy(&empty, &copy), -EINVAL);
  m0_net_desc_free(&copy);
  m0_net_desc_free(&copy);
}

// Each machine has a mutex of its own, which alone does not exclude the other machine.
TEST_F(FakeTest, ABufferIsQueuedWithOneOfTwoMachines) {
  static constexpr m0_net_buffer_callbacks kCallbacks{{[](const m0_net_buffer_event*) {}}};
  TestMachine one(dom_), other(dom_);
  start(one);
  start(other);
  TestBuffer buf(told_);
  buf.registered(dom_);
  buf.nb_callbacks = &kCallbacks;
  buf.nb_qtype = M0_NET_QT_MSG_RECV;
  buf.nb_min_receive_size = buf.nb_max_receive_msgs = 1;
  // Many segments make add() slow, so that the two calls overlap.
  std::vector<m0_bcount_t> counts(20'000, 1);
  const m0_bufvec own =
      std::exchange(buf.nb_buffer, {{static_cast<std::uint32_t>(counts.size()), counts.data()}, nullptr});
  std::atomic<int> owners = 0, more_than_one = 0, wrong = 0;
  const auto add = [&](m0_net_transfer_mc* tm) {
    for (int i = 0; i < 1000 && more_than_one == 0; ++i) {
      if (const int answer = m0_net_buffer_add(&buf, tm); answer != 0) {
        wrong += answer == -EBADFD ? 0 : 1;
        continue;
      }
      more_than_one += owners++;
      const m0_net_buffer_event ev{&buf, m0_time_now(), -ECANCELED, 0, 0, nullptr};
      --owners;
      m0_net_buffer_event_post(&ev);
    }
  };
  {
    std::jthread first(add, &one), second(add, &other);
  }
  buf.nb_buffer = own;
  EXPECT_EQ(more_than_one, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(m0_net_tm_tlist_length(&one.ntm_q[M0_NET_QT_MSG_RECV]), 0u);
  EXPECT_EQ(m0_net_tm_tlist_length(&other.ntm_q[M0_NET_QT_MSG_RECV]), 0u);
  stop(one);
  stop(other);
}

TEST_F(FakeTest, RefusesAnEventOfWhatIsNotQueued) {
  TestBuffer buf(told_);
  buf.registered(dom_);
  const m0_net_buffer_event of_idle{&buf, m0_time_now(), 0, 1, 0, nullptr}, of_none{};
  for (const m0_net_buffer_event* const ev : {&of_idle, &of_none, static_cast<const m0_net_buffer_event*>(nullptr)}) {
    refuse(0, "");
    m0_net_buffer_event_post(ev);
    EXPECT_STRNE(m0_net_last_error(), "");
  }
  const m0_net_tm_event of_no_machine{};
  m0_net_tm_event_post(nullptr);
  m0_net_tm_event_post(&of_no_machine);
  EXPECT_EQ(buf.nb_flags, M0_NET_BUF_REGISTERED);
}

// A stop while starting takes effect right after the start.
TEST_F(FakeTest, StopWhileStarting) {
  TestMachine machine(dom_);
  EXPECT_EQ(m0_net_tm_start(&machine, "fake"), 0);
  EXPECT_EQ(m0_net_tm_stop(&machine, true), 0);
  EXPECT_EQ(machine.ntm_state, M0_NET_TM_STARTING);
  post_state(machine, M0_NET_TM_STARTED);
  EXPECT_EQ(machine.ntm_state, M0_NET_TM_STOPPING);
  post_state(machine, M0_NET_TM_STOPPED);
}

// The start fails during the stop, which the transport then refuses.
TEST_F(FakeTest, AStopThatFailsLeavesTheStateThatCameMeanwhile) {
  TestMachine machine(dom_);
  EXPECT_EQ(m0_net_tm_start(&machine, "fake"), 0);
  fake.tm_stop = -EBADFD;
  fake.during_stop = [](m0_net_transfer_mc* tm) { post_state(*tm, M0_NET_TM_FAILED); };
  EXPECT_EQ(m0_net_tm_stop(&machine, true), -EBADFD);
  EXPECT_EQ(machine.ntm_state, M0_NET_TM_FAILED);
}

TEST_F(FakeTest, ACallbackCannotFinaliseItsMachine) {
  m0_net_transfer_mc machine{};
  static constexpr m0_net_tm_callbacks kCallbacks{[](const m0_net_tm_event* ev) { m0_net_tm_fini(ev->nte_tm); }};
  machine.ntm_callbacks = &kCallbacks;
  ASSERT_EQ(m0_net_tm_init(&machine, &dom_), 0);
  ASSERT_EQ(m0_net_tm_stop(&machine, true), 0);
  post_state(machine, M0_NET_TM_STOPPED);
  EXPECT_EQ(machine.ntm_dom, &dom_);
  m0_net_tm_fini(&machine);
  EXPECT_EQ(machine.ntm_dom, nullptr);
}

TEST(Channel, RefusesALinkThatIsNotWhereItShouldBe) {
  m0_mutex guard;
  m0_mutex_init(&guard);
  m0_chan chan, other;
  m0_chan_init(&chan, &guard);
  m0_chan_init(&other, &guard);
  m0_clink plain, goes;
  m0_clink_init(&plain, nullptr);
  m0_clink_del_lock(&plain);
  EXPECT_NE(std::string_view(m0_net_last_error()).find("no channel"), std::string_view::npos);
  m0_clink_init(&goes, [](m0_clink* link) {
    m0_clink_del(link);
    link->cl_next = link;  // its memory may be overwritten from now on
    return true;
  });
  m0_clink_add_lock(&chan, &goes);
  m0_clink_add_lock(&chan, &plain);
  for (m0_chan* const again : {&chan, &other}) m0_clink_add_lock(again, &plain);
  m0_chan_broadcast_lock(&chan);
  EXPECT_TRUE(m0_chan_trywait(&plain));
  EXPECT_FALSE(m0_chan_trywait(&plain));
  EXPECT_FALSE(m0_clink_is_armed(&goes));
  m0_clink_del_lock(&plain);
  m0_clink_fini(&goes);
  m0_clink_fini(&plain);
  m0_mutex_fini(&guard);
}

TEST(Registry, net_module_and_xprt_dynamic_reg_dereg) {
  std::array<m0_net_xprt, 4> made{{{"a", nullptr}, {"b", nullptr}, {"c", nullptr}, {"d", nullptr}}};
  ASSERT_EQ(m0_net_init(), 0);
  EXPECT_EQ(m0_net_xprt_default_get(), &m0_net_lnet_xprt);
  for (const m0_net_xprt& each : made) m0_net_xprt_register(&each);
  EXPECT_NE(std::string_view(m0_net_last_error()).find("fifth"), std::string_view::npos);
  m0_net_xprt_register(made.data());
  EXPECT_NE(std::string_view(m0_net_last_error()).find("already"), std::string_view::npos);
  std::array<const m0_net_xprt*, M0_NET_XPRT_MAX> all{};
  ASSERT_EQ(m0_net_xprts_get(all.data()), 4);
  EXPECT_EQ(all[3], &made[2]);
  m0_net_xprt_default_set(&made[1]);
  m0_net_xprt_deregister(&made[1]);
  EXPECT_EQ(m0_net_xprt_default_get(), nullptr);
  ASSERT_EQ(m0_net_xprts_get(all.data()), 3);
  EXPECT_EQ(all[2], &made[2]);
  m0_net_xprt_deregister(&made[0]);
  m0_net_xprt_deregister(&made[2]);
  m0_net_fini();
  EXPECT_EQ(m0_net_xprts_get(nullptr), 0);
}

}  // namespace
}  // namespace fairlead::motr
