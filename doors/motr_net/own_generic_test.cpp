// Motr's tests of its generic layer, by their names (docs/motr.md), over this transport.

#include <array>
#include <atomic>

#include "doors/motr_net/lists.hpp"
#include "doors/motr_net/machine_for_tests.hpp"
#include "doors/motr_net/refuse.hpp"

namespace fairlead::motr {
namespace {

class OwnTest : public ::testing::Test {
 protected:
  OwnTest() { EXPECT_EQ(m0_net_domain_init(&dom_, &m0_net_lnet_xprt), 0); }
  ~OwnTest() override {
    m0_net_domain_fini(&dom_);
    EXPECT_EQ(dom_.nd_xprt, nullptr) << m0_net_last_error();
  }
  m0_net_domain dom_{};
  Told told_;
};

/// A locked pool.
struct TestPool : m0_net_buffer_pool {
  explicit TestPool(m0_net_domain& dom, std::uint32_t buffers, std::uint32_t colours = 0) : m0_net_buffer_pool{} {
    static constexpr m0_net_buffer_pool_ops kOps{[](m0_net_buffer_pool* pool) {
                                                   ++static_cast<TestPool*>(pool)->not_empty;
                                                   m0_net_domain_buffer_pool_not_empty(pool);
                                                 },
                                                 [](m0_net_buffer_pool* pool) { ++static_cast<TestPool*>(pool)->low; }};
    nbp_ops = &kOps;
    EXPECT_EQ(m0_net_buffer_pool_init(this, &dom, 2, 2, 4096, colours, 12, false), 0);
    m0_net_buffer_pool_lock(this);
    EXPECT_EQ(m0_net_buffer_pool_provision(this, buffers), static_cast<int>(buffers));
  }
  ~TestPool() {
    if (m0_net_buffer_pool_is_locked(this)) m0_net_buffer_pool_unlock(this);
    m0_net_buffer_pool_fini(this);
    EXPECT_EQ(nbp_private, nullptr) << m0_net_last_error();
  }
  TestPool(const TestPool&) = delete;
  TestPool& operator=(const TestPool&) = delete;
  int not_empty = 0, low = 0;
};

TEST_F(OwnTest, buffer_pool) {
  TestPool pool(dom_, 5, 3);
  EXPECT_EQ(pool.nbp_free, 5u);
  EXPECT_EQ(pool.not_empty, 1);
  m0_net_buffer* const warm = m0_net_buffer_pool_get(&pool, M0_BUFFER_ANY_COLOUR);
  m0_net_buffer* const cold = m0_net_buffer_pool_get(&pool, 1);
  EXPECT_EQ(warm->nb_pool, &pool);
  EXPECT_EQ(pool.nbp_free, 3u);
  m0_net_buffer_pool_put(&pool, warm, 2);
  m0_net_buffer_pool_put(&pool, cold, M0_BUFFER_ANY_COLOUR);
  m0_net_buffer_pool_put(&pool, warm, 2);
  EXPECT_NE(std::string_view(m0_net_last_error()).find("in the pool"), std::string_view::npos);
  EXPECT_EQ(pool.nbp_free, 5u);
  TestBuffer foreign(told_);
  m0_net_buffer_pool_put(&pool, &foreign.registered(dom_), 2);
  EXPECT_EQ(pool.nbp_free, 5u) << "it would go with the pool";
  EXPECT_EQ(m0_net_buffer_pool_get(&pool, 2), warm) << "of its colour";
  EXPECT_EQ(m0_net_buffer_pool_get(&pool, 3), nullptr) << "no such colour";
  m0_net_buffer_pool_put(&pool, warm, 2);
  std::vector<m0_net_buffer*> out{m0_net_buffer_pool_get(&pool, 0)};
  EXPECT_NE(out[0], warm) << "the least recently used of all";
  while (m0_net_buffer* const each = m0_net_buffer_pool_get(&pool, 2)) out.push_back(each);
  EXPECT_EQ(out.size(), 5u);
  EXPECT_EQ(out[1], warm);
  EXPECT_EQ(pool.low, 2);
  m0_net_buffer_pool_fini(&pool);
  EXPECT_NE(pool.nbp_private, nullptr) << "not while buffers are out";
  EXPECT_EQ(m0_net_buffer_pool_provision(&pool, 2), 2) << "it grows";
  EXPECT_FALSE(m0_net_buffer_pool_prune(&pool));
  EXPECT_EQ(m0_net_buffer_pool_provision(&pool, 1), 1);
  EXPECT_TRUE(m0_net_buffer_pool_prune(&pool));
  EXPECT_EQ(pool.nbp_buf_nr, 7u);
  for (m0_net_buffer* const each : out) m0_net_buffer_pool_put(&pool, each, 0);
  m0_net_buffer_pool_unlock(&pool);
  EXPECT_EQ(m0_net_buffer_pool_get(&pool, 0), nullptr) << "not locked";
  std::vector<std::jthread> threads;
  threads.reserve(10);
  for (unsigned i = 0; i < 10; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        m0_net_buffer_pool_lock(&pool);
        m0_net_buffer* const each = m0_net_buffer_pool_get(&pool, i % 3);
        if (i == 0) m0_net_buffer_pool_provision(&pool, 1);
        if (i == 1) m0_net_buffer_pool_prune(&pool);
        m0_net_buffer_pool_unlock(&pool);
        if (each == nullptr) continue;
        m0_net_buffer_pool_lock(&pool);
        m0_net_buffer_pool_put(&pool, each, i % 3);
        m0_net_buffer_pool_unlock(&pool);
      }
    });
  threads.clear();
  EXPECT_EQ(pool.nbp_free, pool.nbp_buf_nr);
}

/// Completions of provisioned buffers, which return to their pool at once, under their machine's colour.
std::atomic<int> provided = 0;
const m0_net_buffer_callbacks kProvided{{[](const m0_net_buffer_event* ev) {
  m0_net_buffer* const buf = ev->nbe_buffer;
  if ((buf->nb_flags & M0_NET_BUF_QUEUED) != 0) return;
  m0_net_buffer_pool_lock(buf->nb_pool);
  m0_net_buffer_pool_put(buf->nb_pool, buf, m0_net_tm_colour_get(buf->nb_tm));
  m0_net_buffer_pool_unlock(buf->nb_pool);
  ++provided;
}}};

TEST_F(OwnTest, net_prov) {
  TestPool pool(dom_, 3, 2);
  m0_net_buffer_pool_unlock(&pool);
  TestBuffer outbox(told_);
  outbox.registered(dom_);
  {
    TestMachine first(dom_), second(dom_), sender(dom_);
    EXPECT_EQ(m0_net_tm_pool_attach(&first, &pool, &kProvided, 0, 1, 2), -EINVAL);
    ASSERT_EQ(m0_net_tm_pool_attach(&first, &pool, &kProvided, 4096, 1, 1), 0);
    ASSERT_EQ(m0_net_tm_pool_attach(&second, &pool, &kProvided, 4096, 1, 2), 0);
    m0_net_tm_colour_set(&first, 0);
    m0_net_tm_colour_set(&second, 1);
    ASSERT_EQ(first.start("0@lo:12345:35:1"), 0);
    const auto length = [](TestMachine& machine) {
      const Locked lock(machine.ntm_mutex);
      return m0_net_tm_tlist_length(&machine.ntm_q[M0_NET_QT_MSG_RECV]);
    };
    EXPECT_EQ(length(first), 2u) << "two at first";
    ASSERT_EQ(second.start("0@lo:12345:35:2"), 0);
    EXPECT_EQ(length(second), 1u);
    EXPECT_EQ(second.ntm_recv_queue_deficit, 1u) << "the pool is empty";
    EXPECT_EQ(second.figures(M0_NET_QT_MSG_RECV).nqs_num_f_events, 0u) << "which is no failure";
    m0_net_buffer_pool_lock(&pool);
    m0_net_buffer_pool_provision(&pool, 2);  // the first one triggers the not-empty callback
    m0_net_buffer_pool_unlock(&pool);
    EXPECT_EQ(length(second), 2u);
    EXPECT_EQ(second.ntm_recv_queue_deficit, 0u);
    m0_net_tm_pool_length_set(&first, 3);
    EXPECT_EQ(length(first), 3u);
    EXPECT_EQ(pool.nbp_free, 0u);
    // Each message takes one buffer; returned buffers are queued again.
    ASSERT_EQ(sender.start("0@lo:12345:35:3"), 0);
    m0_net_end_point* const there = sender.end_point("0@lo:12345:35:1");
    for (int i = 1; i <= 5; ++i) {
      ASSERT_EQ(outbox.send(sender, there, 100), 0);
      told_.wait_for(static_cast<std::size_t>(i));
      while (provided < i || length(first) < 3 || outbox.is_queued()) std::this_thread::yield();
    }
    m0_net_end_point_put(there);
    EXPECT_EQ(first.figures(M0_NET_QT_MSG_RECV).nqs_num_s_events, 5u);
    EXPECT_EQ(first.figures(M0_NET_QT_MSG_RECV).nqs_num_adds, 8u) << "five that were filled, three that are queued";
  }
  EXPECT_EQ(pool.nbp_free, 5u);
}

// Ten shapes: segments of the source, segments of the target.
TEST_F(OwnTest, buf_copy) {
  constexpr std::array<std::array<std::uint32_t, 4>, 10> kShapes{{{1, 40, 1, 40},
                                                                  {1, 40, 4, 10},
                                                                  {4, 10, 1, 40},
                                                                  {4, 10, 4, 10},
                                                                  {5, 8, 2, 20},
                                                                  {2, 20, 5, 8},
                                                                  {40, 1, 1, 40},
                                                                  {1, 40, 40, 1},
                                                                  {3, 14, 6, 7},
                                                                  {8, 5, 3, 14}}};
  const std::string text = "the quick brown fox jumps over the dog!";
  for (const auto& [from_count, from_size, to_count, to_size] : kShapes) {
    TestBuffer from(told_, from_count, from_size), to(told_, to_count, to_size);
    from.write(text);
    m0_bufvec_cursor source, target;
    m0_bufvec_cursor_init(&source, &from.nb_buffer);
    m0_bufvec_cursor_init(&target, &to.nb_buffer);
    EXPECT_EQ(m0_bufvec_cursor_copy(&target, &source, text.size()), text.size());
    EXPECT_EQ(to.read(0, text.size()), text) << from_count << "x" << from_size << " to " << to_count << "x" << to_size;
    // The same by a transfer.
    std::memset(to.nb_buffer.ov_buf[0], 0, to_size);
    TestMachine one(dom_), other(dom_);
    ASSERT_EQ(one.start("0@lo:12345:36:1"), 0);
    ASSERT_EQ(other.start("0@lo:12345:36:2"), 0);
    ASSERT_EQ(to.registered(dom_).bulk(one, M0_NET_QT_PASSIVE_BULK_RECV, 0), 0);
    ASSERT_EQ(from.registered(dom_).use(other, M0_NET_QT_ACTIVE_BULK_SEND, text.size(), to), 0);
    told_.wait_for(2);
    while (from.is_queued() || to.is_queued()) std::this_thread::yield();
    EXPECT_EQ(to.read(0, text.size()), text);
    one.stop(true);
    other.stop(true);
    told_.clear();
  }
}

TEST_F(OwnTest, failure) {
  TestBuffer buf(told_), passive(told_, 1, 64);
  buf.registered(dom_);
  passive.registered(dom_);
  TestMachine one(dom_), other(dom_);
  ASSERT_EQ(one.start("0@lo:12345:37:1"), 0);
  ASSERT_EQ(other.start("0@lo:12345:37:2"), 0);
  m0_net_end_point* const there = one.end_point("0@lo:12345:37:2");
  // No receive buffer, or none large enough: the receiver gets an event.
  for (std::size_t i = 1; i <= 2; ++i) {
    ASSERT_EQ(buf.send(one, there, 100), 0);
    told_.wait_for(i);
    for (;;) {
      const std::scoped_lock lock(other.mutex);
      if (other.events.size() == 1 + i) break;
    }
    EXPECT_EQ(other.events.back(), (TestMachine::Event{M0_NET_TEV_ERROR, M0_NET_TM_UNDEFINED, -ENOBUFS}));
    while (buf.is_queued()) std::this_thread::yield();
    if (i == 1) {
      ASSERT_EQ(passive.receive(other, 64, 1), 0);
    }
  }
  EXPECT_TRUE(passive.is_queued());
  EXPECT_TRUE(m0_net_buffer_del(&passive, &other));
  told_.wait_for(3);
  while (passive.is_queued()) std::this_thread::yield();
  // A descriptor can be used once.
  ASSERT_EQ(passive.bulk(other, M0_NET_QT_PASSIVE_BULK_RECV, 0), 0);
  ASSERT_EQ(buf.use(one, M0_NET_QT_ACTIVE_BULK_SEND, 10, passive), 0);
  told_.wait_for(5);
  while (buf.is_queued()) std::this_thread::yield();
  ASSERT_EQ(buf.bulk(one, M0_NET_QT_ACTIVE_BULK_SEND, 10), 0);
  EXPECT_EQ(told_.wait_for(6).at(5).status, -ENOENT);
  m0_net_end_point_put(there);
  while (buf.is_queued()) std::this_thread::yield();
}

// Deregistering a buffer waits for the end of its callback, and holds nothing that the callback may need.
TEST_F(OwnTest, ACallbackMayUseTheDomainOfABufferThatGoes) {
  static TestBuffer* next = nullptr;
  static std::atomic<int> step = 0;
  TestBuffer buf(told_), another(told_);
  next = &another;
  static constexpr m0_net_buffer_callbacks kCallbacks{{[](const m0_net_buffer_event* ev) {
    step = 1;
    while (m0_net_buffer_register(next, ev->nbe_buffer->nb_dom) == 0 && step < 50) {  // until the other thread comes
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      m0_net_buffer_deregister(next, next->nb_dom);
      ++step;
    }
  }}};
  buf.nb_callbacks = &kCallbacks;
  TestMachine machine(dom_);
  ASSERT_EQ(machine.start("0@lo:12345:37:1"), 0);
  ASSERT_EQ(buf.registered(dom_).receive(machine, 100, 1), 0);
  ASSERT_TRUE(m0_net_buffer_del(&buf, &machine));
  while (step == 0) std::this_thread::yield();
  m0_net_buffer_deregister(&buf, &dom_);
  EXPECT_EQ(step, 50);
}

TEST_F(OwnTest, RefusesNull) {
  m0_net_buffer_pool_fini(nullptr);
  m0_net_buffer_pool_lock(nullptr);
  m0_net_buffer_pool_unlock(nullptr);
  EXPECT_FALSE(m0_net_buffer_pool_is_locked(nullptr));
  EXPECT_EQ(m0_net_buffer_pool_get(nullptr, 0), nullptr);
  m0_mutex_lock(nullptr);
  m0_chan_signal_lock(nullptr);
  m0_clink_add(nullptr, nullptr);
  EXPECT_FALSE(m0_clink_is_armed(nullptr));
  EXPECT_FALSE(m0_chan_timedwait(nullptr, 0));
  EXPECT_EQ(m0_net_tm_tlist_length(nullptr), 0u);
  const m0_bufvec empty{{1, nullptr}, nullptr};
  EXPECT_EQ(m0_vec_count(nullptr), 0u);
  EXPECT_EQ(m0_vec_count(&empty.ov_vec), 0u);
  EXPECT_EQ(m0_bufvec_alloc(nullptr, 1, 1), -EINVAL);
  m0_bufvec_free(nullptr);
  m0_bufvec_cursor cursor;
  m0_bufvec_cursor_init(&cursor, &empty);
  EXPECT_EQ(m0_bufvec_cursor_addr(&cursor), nullptr);
  EXPECT_EQ(m0_bufvec_cursor_copyto(&cursor, &cursor, 1), 0u);
  m0_bufvec_cursor_init(&cursor, nullptr);
  EXPECT_EQ(m0_bufvec_cursor_step(nullptr), 0u);
  EXPECT_EQ(m0_bufvec_cursor_copyfrom(&cursor, nullptr, 1), 0u);
  EXPECT_EQ(m0_bitmap_init(nullptr, 1), -EINVAL);
  EXPECT_FALSE(m0_bitmap_get(nullptr, 0));
  m0_net_desc_free(nullptr);
  m0_net_lnet_ifaces_put(&dom_, nullptr);
  EXPECT_EQ(m0_net_lnet_ifaces_get(&dom_, nullptr), -EINVAL);
  TestMachine machine(dom_);
  EXPECT_EQ(m0_net_tm_confine(&machine, nullptr), -EINVAL);
  ASSERT_EQ(m0_net_buffer_event_deliver_synchronously(&machine), 0);
  ASSERT_EQ(machine.start("0@lo:12345:37:1"), 0);
  m0_net_buffer_event_notify(&machine, nullptr);
  EXPECT_NE(std::string_view(m0_net_last_error()).find("no channel"), std::string_view::npos);
}

TEST_F(OwnTest, ping) {
  TestBuffer one(told_), other(told_);
  one.registered(dom_);
  other.registered(dom_);
  TestMachine client(dom_), server(dom_);
  ASSERT_EQ(client.start("0@lo:12345:38:1"), 0);
  ASSERT_EQ(server.start("0@lo:12345:38:2"), 0);
  m0_net_end_point* const there = client.end_point("0@lo:12345:38:2");
  ASSERT_EQ(other.receive(server, 4096, 1), 0);
  one.write("ping");
  ASSERT_EQ(one.send(client, there, 4), 0);
  for (const auto& each : told_.wait_for(2))
    EXPECT_EQ(other.read(0, each.length), each.queue == M0_NET_QT_MSG_RECV ? "ping" : "");
  while (one.is_queued() || other.is_queued()) std::this_thread::yield();
  m0_net_end_point* const back = server.end_point("0@lo:12345:38:1");
  ASSERT_EQ(one.receive(client, 4096, 1), 0);
  other.write("pong");
  ASSERT_EQ(other.send(server, back, 4), 0);
  told_.wait_for(4);
  EXPECT_EQ(one.read(0, 4), "pong");
  while (one.is_queued() || other.is_queued()) std::this_thread::yield();
  m0_net_end_point_put(there);
  m0_net_end_point_put(back);
}

TEST_F(OwnTest, endpoint_is_valid) {
  TestMachine machine(dom_);
  ASSERT_EQ(machine.start("127.0.0.1@tcp:*:34:*"), 0);
  for (const char* const good : {"10.0.0.5@tcp:12345:34:1", "10.0.0.5@o2ib:12345:63:4095", "10.0.0.5@tcp1:1:1:1"}) {
    m0_net_end_point* const ep = machine.end_point(good);
    m0_net_end_point_put(ep);
  }
  for (const char* const bad : {"", "10.0.0.5", "10.0.0.5@tcp", "10.0.0.5@tcp:12345", "10.0.0.5@tcp:12345:34",
                                "10.0.0.5@tcp:12345:34:0", "10.0.0.5@tcp:12345:64:1", "10.0.0.5@tcp:12345:34:4096",
                                "10.0.0.5@tcp:12345:34:*", "10.0.0.5@elsewhere:12345:34:1", "10.0.0@tcp:12345:34:1",
                                "10.0.0.5@tcp:12345:34:1:1", "10.0.0.5@tcp:70000:34:1"}) {
    m0_net_end_point* ep = nullptr;
    EXPECT_EQ(m0_net_end_point_create(&ep, &machine, bad), -EINVAL) << bad;
  }
}

}  // namespace
}  // namespace fairlead::motr
