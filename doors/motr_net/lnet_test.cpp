// Motr's tests of its LNet transport, by their names (docs/motr.md), over this door.

#include <array>

#include "doors/motr_net/machine_for_tests.hpp"

namespace fairlead::motr {
namespace {

constexpr std::string_view kNear = "0@lo:12345:34:1", kFar = "0@lo:12345:34:2";

class LnetTest : public ::testing::Test {
 protected:
  LnetTest() { EXPECT_EQ(m0_net_domain_init(&dom_, &m0_net_lnet_xprt), 0); }
  ~LnetTest() override {
    m0_net_domain_fini(&dom_);
    EXPECT_EQ(dom_.nd_xprt, nullptr) << m0_net_last_error();
  }
  m0_net_domain dom_{};
  Told told_;
};

class LnetPair : public LnetTest {
 protected:
  LnetPair() {
    EXPECT_EQ(near_->start(std::string(kNear)), 0);
    EXPECT_EQ(far_->start(std::string(kFar)), 0);
    to_far_ = near_->end_point(std::string(kFar));
  }
  ~LnetPair() override {
    m0_net_end_point_put(to_far_);
    for (auto* const machine : {&near_, &far_}) machine->reset();
    for (auto* const buffer : {&one_, &two_, &three_}) buffer->reset();
  }
  std::unique_ptr<TestBuffer> buffer(std::uint32_t segments = 1, m0_bcount_t size = 4096) {
    auto made = std::make_unique<TestBuffer>(told_, segments, size);
    made->registered(dom_);
    return made;
  }
  std::unique_ptr<TestMachine> near_ = std::make_unique<TestMachine>(dom_), far_ = std::make_unique<TestMachine>(dom_);
  m0_net_end_point* to_far_ = nullptr;
  std::unique_ptr<TestBuffer> one_ = buffer(), two_ = buffer(), three_ = buffer();
};

TEST_F(LnetTest, tm_initfini) {
  EXPECT_EQ(m0_net_lnet_ep_addr_net_cmp("127.0.0.1@tcp:12345:31:1", "127.0.0.1@tcp:12345:32:*"), 0);
  const int up = m0_net_lnet_ep_addr_net_cmp("127.0.0.1@tcp:12345:31:1", "127.0.0.2@tcp:12345:31:1");
  EXPECT_NE(up, 0);
  EXPECT_EQ(m0_net_lnet_ep_addr_net_cmp("127.0.0.2@tcp:12345:31:1", "127.0.0.1@tcp:12345:31:1"), -up);
  EXPECT_EQ(m0_net_lnet_ep_addr_net_cmp("127.0.0.1@tcp", "127.0.0.1@tcp:12345:31:1"), -1);
  char* const* nids = nullptr;
  ASSERT_EQ(m0_net_lnet_ifaces_get(&dom_, &nids), 0);
  EXPECT_STREQ(nids[0], "0@lo");
  m0_net_lnet_ifaces_put(&dom_, &nids);
  EXPECT_EQ(nids, nullptr);
  TestMachine machine(dom_);
  m0_net_tm_fini(&machine);
  EXPECT_EQ(machine.ntm_state, M0_NET_TM_UNDEFINED);
  EXPECT_EQ(m0_net_tm_init(&machine, &dom_), 0) << "the same object again";
  EXPECT_EQ(m0_net_tm_init(&machine, &dom_), -EBADFD);
  m0_net_domain_fini(&dom_);
  EXPECT_NE(dom_.nd_xprt, nullptr) << "not while it has a machine";
}

TEST_F(LnetTest, tm_startstop) {
  {
    TestMachine bad(dom_);
    EXPECT_EQ(bad.start("nonsense"), -EINVAL);
    EXPECT_EQ(bad.ntm_state, M0_NET_TM_FAILED);
    EXPECT_TRUE(bad.events.empty());
    TestMachine portal(dom_);
    EXPECT_EQ(portal.start("0@lo:12345:99:1"), 0);
    EXPECT_EQ(portal.ntm_state, M0_NET_TM_FAILED);
    EXPECT_EQ(portal.events, (std::vector<TestMachine::Event>{{M0_NET_TEV_STATE_CHANGE, M0_NET_TM_FAILED, -EINVAL}}));
    TestMachine fixed(dom_);
    EXPECT_EQ(fixed.start("0@lo:12345:34:101"), 0);
    EXPECT_EQ(fixed.address(), "0@lo:12345:34:101");
    TestMachine taken(dom_);
    EXPECT_EQ(taken.start("0@lo:12345:34:101"), 0);
    EXPECT_EQ(taken.events.at(0).status, -EADDRINUSE);
    TestMachine idle(dom_);
    idle.stop(true);
    EXPECT_EQ(idle.events.at(0).next_state, M0_NET_TM_STOPPED);
  }
  std::array<m0_net_domain, 3> domains{};
  std::array<std::unique_ptr<TestMachine>, 3> machines;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(m0_net_domain_init(&domains[i], &m0_net_lnet_xprt), 0);
    machines[i] = std::make_unique<TestMachine>(domains[i]);
    m0_bitmap processors;
    ASSERT_EQ(m0_bitmap_init(&processors, 2), 0);
    for (const std::size_t bit : {1, 0}) {  // the last one counts
      m0_bitmap_set(&processors, bit, true);
      m0_bitmap_set(&processors, 1 - bit, false);
      EXPECT_EQ(m0_net_tm_confine(machines[i].get(), &processors), 0);
    }
    m0_bitmap_fini(&processors);
    ASSERT_EQ(machines[i]->start("0@lo:12345:42:*"), 0);
    EXPECT_EQ(machines[i]->address(), "0@lo:12345:42:" + std::to_string(4095 - i));
  }
  machines[1].reset();
  machines[1] = std::make_unique<TestMachine>(domains[1]);
  ASSERT_EQ(machines[1]->start("0@lo:12345:42:*"), 0);
  EXPECT_EQ(machines[1]->address(), "0@lo:12345:42:4094") << "the hole in the middle";
  for (std::size_t i = 0; i < 3; ++i) {
    machines[i].reset();
    m0_net_domain_fini(&domains[i]);
  }
}

TEST_F(LnetPair, msg) {
  // A receive that is cancelled.
  ASSERT_EQ(one_->receive(*far_, 4096, 1), 0);
  EXPECT_TRUE(m0_net_buffer_del(one_.get(), far_.get()));
  EXPECT_EQ(told_.wait_for(1).at(0).status, -ECANCELED);
  EXPECT_FALSE(m0_net_buffer_del(one_.get(), far_.get()));
  far_->figures(M0_NET_QT_MSG_RECV, true);
  told_.clear();
  // Until each has received the maximum number of messages, then until its space is used up.
  struct Case {
    m0_bcount_t size_min;
    std::uint32_t most;
    std::vector<TestBuffer*> inboxes;
  };
  constexpr std::size_t kInEach = 3;
  for (const Case& each : {Case{100, kInEach, {one_.get()}},
                           {4096 - 250, 100, {one_.get()}},
                           {100, kInEach, {one_.get(), three_.get()}},
                           {4096 - 250, 100, {one_.get(), three_.get()}}}) {
    for (TestBuffer* const inbox : each.inboxes) ASSERT_EQ(inbox->receive(*far_, each.size_min, each.most), 0);
    const std::size_t wanted = kInEach * each.inboxes.size();
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::string text = "message " + std::to_string(i) + std::string(91, '.');
      two_->write(text);
      ASSERT_EQ(two_->send(*near_, to_far_, 100), 0) << m0_net_last_error();
      told_.wait_for(2 * (i + 1));
      EXPECT_EQ(each.inboxes[i / kInEach]->read(100 * (i % kInEach), 100), text);
    }
    std::vector<Told::Completion> received;
    for (const auto& completion : told_.all())
      if (completion.queue == M0_NET_QT_MSG_RECV) received.push_back(completion);
    ASSERT_EQ(received.size(), wanted);
    for (std::size_t i = 0; i < wanted; ++i) {
      EXPECT_EQ(received[i].buffer, each.inboxes[i / kInEach]);
      EXPECT_EQ(received[i].offset, 100 * (i % kInEach));
      EXPECT_EQ(received[i].length, 100u);
      EXPECT_EQ(received[i].sender, kNear);
      EXPECT_EQ(received[i].is_final, i % kInEach == kInEach - 1);
    }
    for (const TestBuffer* const inbox : each.inboxes) EXPECT_EQ(inbox->nb_msgs_received, kInEach);
    told_.clear();
  }
  const m0_net_qstats figures = far_->figures(M0_NET_QT_MSG_RECV);
  EXPECT_EQ(figures.nqs_num_adds, 6u);
  EXPECT_EQ(figures.nqs_num_s_events, 18u);
  EXPECT_EQ(figures.nqs_total_bytes, 1800u);
  EXPECT_EQ(figures.nqs_max_bytes, 100u);
  near_->wait_for({M0_NET_TM_STARTED});  // and until its callbacks have returned
  EXPECT_EQ(to_far_->nep_ref.ref_cnt, 1) << "sends have given theirs back";
  // Without a receive buffer a send succeeds nevertheless, and the receiver gets an event.
  ASSERT_EQ(two_->send(*near_, to_far_, 8), 0);
  EXPECT_EQ(told_.wait_for(1).at(0).status, 0);
  m0_net_end_point* made = nullptr;
  EXPECT_EQ(m0_net_end_point_create(&made, near_.get(), "0@lo:12345:34:*"), -EINVAL);
  // To a machine that does not exist: Motr over LNet reports nothing; here the sender gets an error.
  m0_net_end_point* const absent = near_->end_point("0@lo:12345:34:77");
  ASSERT_EQ(two_->send(*near_, absent, 8), 0);
  EXPECT_EQ(told_.wait_for(2).at(1).status, -ECONNREFUSED);
  m0_net_end_point_put(absent);
}

TEST_F(LnetPair, buf_desc) {
  EXPECT_EQ(m0_net_domain_get_max_buffer_desc_size(&dom_), 64u);
  ASSERT_EQ(one_->bulk(*far_, M0_NET_QT_PASSIVE_BULK_SEND, 2000), 0);
  ASSERT_EQ(one_->nb_desc.nbd_len, 64u);
  EXPECT_EQ(two_->use(*near_, M0_NET_QT_ACTIVE_BULK_SEND, 2000, *one_), -EPERM);
  const auto little = buffer(1, 1000);
  EXPECT_EQ(little->use(*near_, M0_NET_QT_ACTIVE_BULK_RECV, 1000, *one_), -EFBIG);
  EXPECT_EQ(little->nb_length, 1000u) << "nothing has changed";
  two_->use(*near_, M0_NET_QT_ACTIVE_BULK_SEND, 2000, *one_);  // takes the descriptor
  two_->nb_desc.nbd_len = 63;
  EXPECT_EQ(two_->bulk(*near_, M0_NET_QT_ACTIVE_BULK_RECV, 4096), -EINVAL);
  two_->nb_desc.nbd_len = 64;
  two_->nb_desc.nbd_data[40] ^= 1;
  EXPECT_EQ(two_->bulk(*near_, M0_NET_QT_ACTIVE_BULK_RECV, 4096), -EINVAL);
  EXPECT_TRUE(m0_net_buffer_del(one_.get(), far_.get()));
  told_.wait_for(1);
  told_.clear();
  // An active buffer may be as long as what it fetches, or longer, but not shorter; and as long as the buffer that it
  // fills, or shorter, but not longer.
  const auto active = buffer(1, 1000);
  for (const auto& [passive_queue, passive_size, active_queue, active_length, wanted] :
       {std::tuple{M0_NET_QT_PASSIVE_BULK_SEND, 1001U, M0_NET_QT_ACTIVE_BULK_RECV, 1000U, -EFBIG},
        {M0_NET_QT_PASSIVE_BULK_SEND, 1000U, M0_NET_QT_ACTIVE_BULK_RECV, 1000U, 0},
        {M0_NET_QT_PASSIVE_BULK_SEND, 999U, M0_NET_QT_ACTIVE_BULK_RECV, 1000U, 0},
        {M0_NET_QT_PASSIVE_BULK_RECV, 999U, M0_NET_QT_ACTIVE_BULK_SEND, 1000U, -EFBIG},
        {M0_NET_QT_PASSIVE_BULK_RECV, 1000U, M0_NET_QT_ACTIVE_BULK_SEND, 1000U, 0},
        {M0_NET_QT_PASSIVE_BULK_RECV, 1001U, M0_NET_QT_ACTIVE_BULK_SEND, 1000U, 0},
        {M0_NET_QT_PASSIVE_BULK_RECV, 1000U, M0_NET_QT_ACTIVE_BULK_RECV, 1000U, -EPERM}}) {
    SCOPED_TRACE(std::to_string(passive_size) + " and " + std::to_string(active_length));
    const auto passive = buffer(1, passive_queue == M0_NET_QT_PASSIVE_BULK_RECV ? passive_size : 4096);
    ASSERT_EQ(passive->bulk(*far_, passive_queue, passive_size), 0);
    ASSERT_EQ(active->use(*near_, active_queue, active_length, *passive), wanted);
    if (wanted != 0) {
      EXPECT_TRUE(m0_net_buffer_del(passive.get(), far_.get()));
    }
    for (const auto& each : told_.wait_for(wanted == 0 ? 2 : 1)) {
      EXPECT_EQ(each.status, wanted == 0 ? 0 : -ECANCELED);
      if (each.queue == M0_NET_QT_PASSIVE_BULK_RECV && wanted == 0) EXPECT_EQ(each.length, active_length);
      if (each.queue == M0_NET_QT_ACTIVE_BULK_RECV) EXPECT_EQ(each.length, passive_size);
    }
    while (active->is_queued() || passive->is_queued()) std::this_thread::yield();
    told_.clear();
  }
}

TEST_F(LnetPair, bulk) {
  for (const auto queue : {M0_NET_QT_PASSIVE_BULK_RECV, M0_NET_QT_PASSIVE_BULK_SEND}) {  // both, unlike the original
    ASSERT_EQ(one_->bulk(*far_, queue, 100), 0);
    EXPECT_TRUE(m0_net_buffer_del(one_.get(), far_.get()));
    const auto told = told_.wait_for(1).at(0);
    EXPECT_EQ(told.status, -ECANCELED);
    EXPECT_EQ(told.queue, queue);
    EXPECT_EQ(far_->figures(queue).nqs_num_dels, 1u);
    m0_net_desc_free(&one_->nb_desc);
    told_.clear();
  }
  one_->write("what is fetched");
  ASSERT_EQ(one_->bulk(*far_, M0_NET_QT_PASSIVE_BULK_SEND, 15), 0);
  ASSERT_EQ(two_->use(*near_, M0_NET_QT_ACTIVE_BULK_RECV, 4096, *one_), 0);
  for (const auto& each : told_.wait_for(2)) {
    EXPECT_EQ(each.status, 0);
    EXPECT_EQ(each.length, each.queue == M0_NET_QT_ACTIVE_BULK_RECV ? 15u : 0u);
  }
  EXPECT_EQ(two_->read(0, 15), "what is fetched");
  EXPECT_EQ(two_->nb_length, 15u);
  EXPECT_EQ(near_->figures(M0_NET_QT_ACTIVE_BULK_RECV).nqs_total_bytes, 15u);
  EXPECT_EQ(far_->figures(M0_NET_QT_PASSIVE_BULK_SEND).nqs_total_bytes, 15u);
  told_.clear();
  m0_net_desc_free(&one_->nb_desc);
  ASSERT_EQ(one_->bulk(*far_, M0_NET_QT_PASSIVE_BULK_RECV, 0), 0);
  two_->write("what is put");
  ASSERT_EQ(two_->use(*near_, M0_NET_QT_ACTIVE_BULK_SEND, 11, *one_), 0);
  for (const auto& each : told_.wait_for(2)) {
    EXPECT_EQ(each.status, 0);
    EXPECT_EQ(each.length, each.queue == M0_NET_QT_PASSIVE_BULK_RECV ? 11u : 0u);
  }
  EXPECT_EQ(one_->read(0, 11), "what is put");
}

TEST_F(LnetTest, sync) {
  TestBuffer inbox(told_), outbox(told_);
  inbox.registered(dom_);
  outbox.registered(dom_);
  TestMachine receiver(dom_), sender(dom_);
  ASSERT_EQ(m0_net_buffer_event_deliver_synchronously(&receiver), 0);
  EXPECT_FALSE(receiver.ntm_bev_auto_deliver);
  ASSERT_EQ(receiver.start("0@lo:12345:34:5"), 0);
  ASSERT_EQ(sender.start("0@lo:12345:34:6"), 0);
  EXPECT_FALSE(m0_net_buffer_event_pending(&receiver));
  m0_net_buffer_event_deliver_all(&receiver);
  m0_net_end_point* const to = sender.end_point("0@lo:12345:34:5");
  m0_chan signals;
  m0_chan_init(&signals, &receiver.ntm_mutex);
  m0_clink link;
  m0_clink_init(&link, nullptr);
  m0_clink_add_lock(&signals, &link);
  m0_net_buffer_event_notify(&receiver, &signals);
  EXPECT_FALSE(m0_chan_trywait(&link));
  ASSERT_EQ(inbox.receive(receiver, 100, 4), 0);
  for (std::size_t i = 1; i <= 4; ++i) {
    ASSERT_EQ(outbox.send(sender, to, 100), 0);
    told_.wait_for(i);
    while (outbox.is_queued()) std::this_thread::yield();
  }
  m0_chan_wait(&link);
  EXPECT_FALSE(m0_chan_timedwait(&link, m0_time_from_now(0, 1'000'000))) << "once";
  EXPECT_TRUE(m0_net_buffer_event_pending(&receiver));
  m0_net_buffer_event_deliver_all(&receiver);
  std::size_t received = 0;
  for (const auto& each : told_.all()) {
    if (each.queue != M0_NET_QT_MSG_RECV) continue;
    ++received;
    EXPECT_EQ(each.thread, std::this_thread::get_id());
  }
  EXPECT_EQ(received, 4u);
  EXPECT_FALSE(m0_net_buffer_event_pending(&receiver));
  m0_clink_del_lock(&link);
  m0_clink_fini(&link);
  m0_chan_fini_lock(&signals);
  m0_net_end_point_put(to);
  // Buffers queued at the stop also come back on this thread.
  told_.clear();
  ASSERT_EQ(inbox.receive(receiver, 100, 4), 0);
  receiver.stop(true);
  EXPECT_EQ(told_.all().at(0).status, -ECANCELED);
  EXPECT_EQ(told_.all().at(0).thread, std::this_thread::get_id());
}

TEST_F(LnetPair, timeout) {
  one_->nb_timeout = m0_time_sub(m0_time_now(), 1);
  EXPECT_EQ(one_->bulk(*far_, M0_NET_QT_PASSIVE_BULK_RECV, 0), -ETIME);
  EXPECT_EQ(one_->nb_desc.nbd_data, nullptr);
  m0_time_t late = 0;
  const auto add_soon_over = [&](TestBuffer& buffer, const auto& add) {
    int error = -ETIME;
    while (error == -ETIME) {  // if this thread was delayed for so long
      late = buffer.nb_timeout = m0_time_from_now(0, 5'000'000);
      error = add();
    }
    EXPECT_EQ(error, 0);
  };
  add_soon_over(*one_, [&] { return one_->bulk(*far_, M0_NET_QT_PASSIVE_BULK_RECV, 0); });
  add_soon_over(*two_, [&] { return two_->bulk(*far_, M0_NET_QT_PASSIVE_BULK_SEND, 9); });
  add_soon_over(*three_, [&] { return three_->receive(*far_, 4096, 1); });
  const auto untimed = buffer();
  ASSERT_EQ(untimed->bulk(*far_, M0_NET_QT_PASSIVE_BULK_SEND, 9), 0);
  for (const auto& each : told_.wait_for(3)) {
    EXPECT_EQ(each.status, -ETIMEDOUT);
    EXPECT_EQ(far_->figures(each.queue).nqs_num_dels, 0u);
    EXPECT_EQ(far_->figures(each.queue).nqs_num_f_events, 1u);
    EXPECT_EQ(each.buffer->nb_timeout, M0_TIME_NEVER);
  }
  EXPECT_GE(m0_time_now(), late);
  EXPECT_TRUE(untimed->is_queued());
  // A success that comes before the deadline keeps its status.
  m0_net_desc_free(&one_->nb_desc);
  one_->nb_timeout = m0_time_from_now(100, 0);
  ASSERT_EQ(one_->bulk(*far_, M0_NET_QT_PASSIVE_BULK_RECV, 0), 0);
  ASSERT_EQ(two_->use(*near_, M0_NET_QT_ACTIVE_BULK_SEND, 5, *one_), 0);
  const auto told = told_.wait_for(5);
  EXPECT_EQ(told.at(3).status, 0);
  EXPECT_EQ(told.at(4).status, 0);
  far_->stop(true);
  EXPECT_EQ(told_.wait_for(6).at(5).status, -ECANCELED);
  EXPECT_EQ(far_->figures(M0_NET_QT_PASSIVE_BULK_SEND).nqs_num_dels, 1u);
}

TEST_F(LnetTest, fail) {
  m0_net_domain none{};
  EXPECT_EQ(m0_net_domain_init(&none, nullptr), -EINVAL);
  EXPECT_EQ(m0_net_domain_init(&dom_, &m0_net_lnet_xprt), -EBADFD);
  // Null pointers are refused, too.
  m0_net_end_point* nobody = nullptr;
  EXPECT_EQ(m0_net_tm_init(nullptr, &dom_), -EINVAL);
  EXPECT_EQ(m0_net_tm_start(nullptr, "0@lo:12345:34:1"), -EBADFD);
  EXPECT_EQ(m0_net_end_point_create(&nobody, nullptr, "0@lo:12345:34:1"), -EBADFD);
  EXPECT_EQ(m0_net_buffer_register(nullptr, &dom_), -EINVAL);
  EXPECT_EQ(m0_net_buffer_add(nullptr, nullptr), -EINVAL);
  EXPECT_FALSE(m0_net_buffer_del(nullptr, nullptr));
  m0_net_end_point_put(nobody);
  for (const char* const bad :
       {"0@lo:pid:34:1", "0@lo:12345:portal:1", "0@lo:12345:34:tmid", "0@lo:12345:34:0", "0@lo:12345:34:4096",
        "0@nowhere:12345:34:1", "10.0.0.5:12345:34:1", "", "0@lo:12345:34"}) {
    TestMachine machine(dom_);
    EXPECT_EQ(machine.start(bad), -EINVAL) << bad;
    EXPECT_STRNE(m0_net_last_error(), "");
  }
  TestMachine machine(dom_);
  EXPECT_EQ(machine.start("0@lo:12345:34:1"), 0);
  EXPECT_EQ(m0_net_tm_start(&machine, "0@lo:12345:34:2"), -EBADFD) << "it is started";
  TestBuffer stray(told_);
  EXPECT_EQ(stray.receive(machine, 1, 1), -EINVAL) << "it is not registered";
  stray.registered(dom_);
  EXPECT_EQ(m0_net_buffer_register(&stray, &dom_), -EBADFD);
  EXPECT_EQ(stray.receive(machine, 5000, 1), -EINVAL);
  EXPECT_EQ(stray.send(machine, nullptr, 1), -EINVAL);
  EXPECT_EQ(stray.bulk(machine, M0_NET_QT_ACTIVE_BULK_SEND, 1), -EINVAL);
  ASSERT_EQ(stray.receive(machine, 1, 1), 0);
  EXPECT_EQ(stray.receive(machine, 1, 1), -EBADFD) << "it is queued";
  m0_net_buffer_deregister(&stray, &dom_);
  EXPECT_NE(stray.nb_dom, nullptr) << "not while it is queued";
  m0_net_tm_fini(&machine);
  EXPECT_EQ(machine.ntm_state, M0_NET_TM_STARTED) << "not while it runs";
  machine.stop(true);
}

// Of 8.2: what shapes a buffer may have, and registration.
TEST_F(LnetTest, buf_shape_and_buf_reg) {
  EXPECT_EQ(m0_net_domain_get_max_buffer_size(&dom_), 1u << 20);
  EXPECT_EQ(m0_net_domain_get_max_buffer_segment_size(&dom_), 4096u);
  EXPECT_EQ(m0_net_domain_get_max_buffer_segments(&dom_), 256);
  EXPECT_EQ(m0_net_domain_rpc_max_segs_nr(&dom_), 256u);
  EXPECT_EQ(m0_net_domain_rpc_max_msg_size(&dom_, 1), 4096u);
  EXPECT_EQ(m0_net_domain_rpc_max_recv_msgs(&dom_, 1 << 19), 2u);
  for (const auto& [segments, size, wanted] :
       {std::tuple{1U, 1U, 0}, {256U, 4096U, 0}, {1U, 4097U, -EFBIG}, {257U, 4096U, -EFBIG}}) {
    TestBuffer each(told_, segments, size);
    EXPECT_EQ(m0_net_buffer_register(&each, &dom_), wanted) << segments << " x " << size;
    EXPECT_EQ(each.nb_flags, wanted == 0 ? M0_NET_BUF_REGISTERED : 0);
    EXPECT_EQ(each.nb_dom, wanted == 0 ? &dom_ : nullptr);
  }
  TestBuffer hole(told_);
  void* const memory = std::exchange(hole.nb_buffer.ov_buf[0], nullptr);
  EXPECT_EQ(m0_net_buffer_register(&hole, &dom_), -EINVAL);
  hole.nb_buffer.ov_buf[0] = memory;
}

// Of 8.2: addresses are read and printed; and over a network, as the name of it that was given.
TEST_F(LnetTest, ep_addr) {
  TestMachine near(dom_), far(dom_);
  ASSERT_EQ(near.start("127.0.0.1@tcp:*:34:1"), 0);
  ASSERT_EQ(near.ntm_state, M0_NET_TM_STARTED);
  const std::string own = near.address();
  EXPECT_TRUE(own.starts_with("127.0.0.1@tcp:")) << own;
  ASSERT_EQ(far.start(own.substr(0, own.rfind(':')) + ":2"), 0);
  m0_net_end_point* const there = far.end_point(own);
  EXPECT_EQ(there->nep_addr, own);
  EXPECT_EQ(far.end_point(own), there) << "one object for an address";
  EXPECT_EQ(there->nep_ref.ref_cnt, 2);
  m0_net_end_point_put(there);
  {
    TestBuffer inbox(told_), outbox(told_);
    ASSERT_EQ(inbox.registered(dom_).receive(near, 4096, 1), 0);
    ASSERT_EQ(outbox.registered(dom_).send(far, there, 5), 0);
    for (const auto& each : told_.wait_for(2))
      EXPECT_EQ(each.sender, each.queue == M0_NET_QT_MSG_RECV ? far.address() : "");
    while (inbox.is_queued() || outbox.is_queued()) std::this_thread::yield();
  }
  m0_net_end_point* other = nullptr;
  EXPECT_EQ(m0_net_end_point_create(&other, &far, "0@lo:12345:34:1"), -EHOSTUNREACH) << "of another network";
  EXPECT_EQ(m0_net_tm_tlist_length(&far.ntm_end_points), 2u);
  m0_net_end_point_put(there);
  EXPECT_EQ(m0_net_tm_tlist_length(&far.ntm_end_points), 1u) << "its own";
}

}  // namespace
}  // namespace fairlead::motr
