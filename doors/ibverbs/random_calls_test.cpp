// Thousands of random verbs calls on live, destroyed and null objects, with valid and invalid arguments. Nothing
// crashes or hangs, every object can be destroyed at the end, and other users of the device notice nothing; also while
// another thread does the same with the same objects. The seed is printed; FAIRLEAD_TEST_SEED selects another.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "doors/ibverbs/abi.hpp"
#include "doors/ibverbs/peek.hpp"
#include "doors/ibverbs/two_ends_for_tests.hpp"

namespace fairlead {
namespace {

using ibverbs::peek;

constexpr int kCalls = 10'000;
constexpr std::size_t kKept = 24;  // pointers of a kind, including stale ones

/// Pointers of a kind, including stale ones. Threads store and take them in any order.
template <typename Object>
class Kept {
 public:
  Object* operator[](std::size_t at) const { return some_[at].load(std::memory_order_acquire); }
  bool is_alive(std::size_t at) const { return is_alive_[at].load(std::memory_order_relaxed); }
  void bury(std::size_t at) { is_alive_[at].store(false, std::memory_order_relaxed); }
  void keep(std::size_t at, Object* object) {
    if (object == nullptr) return;
    some_[at].store(object, std::memory_order_release);
    is_alive_[at].store(true, std::memory_order_relaxed);
    const std::scoped_lock lock(mutex_);
    all_.push_back(object);
  }
  std::size_t count() const { return all_.size(); }

  /// Every remaining object can be destroyed once.
  void expect_all_destroyed(int (*destroy)(Object*), const char* kind) const {
    for (Object* object : all_) {
      const int error = destroy(object);
      EXPECT_TRUE(error == 0 || error == EINVAL) << kind << ": " << error;
      EXPECT_EQ(destroy(object), EINVAL) << kind;
    }
  }

 private:
  std::array<std::atomic<Object*>, kKept> some_{};
  std::array<std::atomic<bool>, kKept> is_alive_{};  // as far as is known
  std::mutex mutex_;
  std::vector<Object*> all_;  // all that were ever made
};

ibv_qp_init_attr_ex extended(ibv_pd* domain, ibv_cq* sends, ibv_cq* receives) {
  ibv_qp_init_attr_ex attributes{};
  attributes.pd = domain;
  attributes.send_cq = sends;
  attributes.recv_cq = receives;
  attributes.cap = {8, 8, 2, 2, 64};
  attributes.qp_type = IBV_QPT_RC;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
  return attributes;
}

/// State that all callers share.
struct Objects {
  Objects() {
    ibv_device** list = ibv_get_device_list(nullptr);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ::fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
    ibv_query_gid(context, 1, 0, &gid);
    ibv_cq_init_attr_ex of_queue{};
    of_queue.cqe = 1;
    ibv_cq_ex* queue = ibv_create_cq_ex(context, &of_queue);
    ibv_pd* domain = ibv_alloc_pd(context);
    ibv_qp_init_attr_ex of_pair = extended(domain, ibv_cq_ex_to_cq(queue), ibv_cq_ex_to_cq(queue));
    ibv_qp_ex* pair = ibv_qp_to_qp_ex(ibv_create_qp_ex(context, &of_pair));
    polls = *queue;
    posts = *pair;
  }
  ~Objects() {
    pairs.expect_all_destroyed(ibv_destroy_qp, "queue pair");
    addresses.expect_all_destroyed(ibv_destroy_ah, "address handle");
    shared.expect_all_destroyed(ibv_destroy_srq, "shared receive queue");
    queues.expect_all_destroyed(ibv_destroy_cq, "completion queue");
    channels.expect_all_destroyed(ibv_destroy_comp_channel, "channel");
    regions.expect_all_destroyed(ibv_dereg_mr, "region");
    domains.expect_all_destroyed(ibv_dealloc_pd, "protection domain");
    EXPECT_EQ(ibv_close_device(context), 0);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  ibv_context* context = nullptr;
  ibv_gid gid{};
  std::array<char, 32768> memory{};
  Kept<ibv_pd> domains{};
  Kept<ibv_mr> regions{};
  Kept<ibv_cq> queues{};
  Kept<ibv_comp_channel> channels{};
  Kept<ibv_srq> shared{};
  Kept<ibv_qp> pairs{};
  Kept<ibv_ah> addresses{};
  Kept<ibv_cq_ex> extended_queues{};
  Kept<ibv_qp_ex> extended_pairs{};
  // The function pointers in the objects, taken from live ones.
  ibv_cq_ex polls{};
  ibv_qp_ex posts{};
};

class Caller {
 public:
  Caller(Objects& objects, std::uint64_t seed) : objects_(objects), random_(seed) {}

  struct Successes {
    unsigned moves_to_rts = 0, sends = 0, receives = 0;
  };
  const Successes& successes() const { return successes_; }

  void call() {
    switch (below(26)) {
      case 0:
        return objects_.domains.keep(one_in(2) ? 0 : below(kKept), ibv_alloc_pd(objects_.context));
      case 1:
        return destroy(objects_.domains, ibv_dealloc_pd);
      case 2:
        return keep(objects_.regions,
                    ibv_reg_mr(domain(), objects_.memory.data() + below(64), one_in(4) ? below(5000) : 16'000,
                               one_in(4) ? odd_bits(8) : odd_bits(4)));
      case 3:
        return destroy(objects_.regions, ibv_dereg_mr);
      case 4:
        return keep(objects_.queues, ibv_create_cq(objects_.context, static_cast<int>(below(40)) - 2, nullptr,
                                                   any(objects_.channels), static_cast<int>(below(6)) - 1));
      case 5:
        return destroy(objects_.queues, ibv_destroy_cq);
      case 6:
        return add_channel();
      case 7:
        return destroy(objects_.channels, ibv_destroy_comp_channel);
      case 8:
        return add_shared();
      case 9:
        return destroy(objects_.shared, ibv_destroy_srq);
      case 10:
      case 11:
        return add_pair();
      case 12:
        return destroy(objects_.pairs, ibv_destroy_qp);
      case 13:
      case 14:
        return modify();
      case 15:
        return post_receive();
      case 16:
      case 17:
      case 18:
        return post_send();
      case 19:
      case 20:
        return poll();
      case 21:
        return events();
      case 22:
        return add_address();
      case 23:
        return poll_extended();
      case 24:
        return post_extended();
      default:
        return ask();
    }
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool one_in(std::uint32_t chances) { return below(chances) == 0; }
  int odd_bits(unsigned count) { return static_cast<int>(below(1U << count)); }

  /// Prefers a live one, if there is one.
  template <typename Object>
  std::size_t place_in(const Kept<Object>& kept) {
    std::size_t place = below(kKept);
    for (int tries = one_in(8) ? 0 : 8; tries > 0 && !kept.is_alive(place); --tries) place = below(kKept);
    return place;
  }
  template <typename Object>
  Object* any(const Kept<Object>& kept) {
    return one_in(20) ? nullptr : kept[place_in(kept)];
  }
  /// Mostly the same domain, because objects of different domains do not fit together.
  ibv_pd* domain() { return one_in(4) ? any(objects_.domains) : objects_.domains[0]; }
  template <typename Object>
  void destroy(Kept<Object>& kept, int (*destroy_one)(Object*)) {
    if (one_in(20)) return void(destroy_one(nullptr));
    const std::size_t place = place_in(kept);
    if (destroy_one(kept[place]) == 0) kept.bury(place);
  }
  template <typename Object>
  void keep(Kept<Object>& kept, Object* object) {
    kept.keep(below(kKept), object);
  }

  void add_channel() {
    ibv_comp_channel* channel = ibv_create_comp_channel(objects_.context);
    if (channel != nullptr) ::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    keep(objects_.channels, channel);
  }

  void add_shared() {
    ibv_srq_init_attr attributes{};
    attributes.attr = {below(20), below(4), below(8)};
    keep(objects_.shared, ibv_create_srq(domain(), &attributes));
  }

  void add_pair() {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = any(objects_.queues);
    attributes.recv_cq = any(objects_.queues);
    attributes.srq = one_in(3) ? any(objects_.shared) : nullptr;
    attributes.cap = {below(20), below(20), below(4), below(4), below(100)};
    attributes.qp_type = one_in(10) ? static_cast<ibv_qp_type>(below(12)) : static_cast<ibv_qp_type>(2 + below(3));
    attributes.sq_sig_all = odd_bits(1);
    keep(objects_.pairs, ibv_create_qp(domain(), &attributes));
  }

  ibv_ah_attr vector() {
    ibv_ah_attr vector{};
    vector.grh.dgid = one_in(20) ? ibv_gid{} : objects_.gid;
    vector.is_global = one_in(20) ? 0 : 1;
    vector.port_num = one_in(20) ? 7 : 1;
    return vector;
  }

  void add_address() {
    ibv_ah_attr attributes = vector();
    keep(objects_.addresses, ibv_create_ah(domain(), &attributes));
    if (one_in(2)) destroy(objects_.addresses, ibv_destroy_ah);
  }

  void modify() {
    ibv_qp* pair = any(objects_.pairs);
    ibv_qp_attr attributes{};
    attributes.path_mtu = IBV_MTU_1024;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attributes.ah_attr = vector();
    ibv_qp* peer = one_in(2) ? pair : any(objects_.pairs);  // connecting it to itself is fine: then its messages arrive
    attributes.dest_qp_num = peer != nullptr ? peek(peer->qp_num) : below(1U << 24);
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
    attributes.port_num = 1;
    attributes.timeout = 1;
    attributes.retry_cnt = attributes.rnr_retry = static_cast<std::uint8_t>(below(3));
    attributes.min_rnr_timer = 1;
    constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    struct Step {
      ibv_qp_state to;
      int mask;
    };
    const std::array<Step, 8> steps{{
        {IBV_QPS_RESET, IBV_QP_STATE},
        {IBV_QPS_INIT, kInit | IBV_QP_ACCESS_FLAGS},
        {IBV_QPS_INIT, kInit | IBV_QP_QKEY},
        {IBV_QPS_RTR, kRtr},
        {IBV_QPS_RTR, kRtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
        {IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN},
        {IBV_QPS_RTS,
         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC},
        {static_cast<ibv_qp_state>(below(8)), odd_bits(22)},
    }};
    // Mostly in order and correct, so that pairs reach RTS and traffic flows.
    for (std::size_t i = one_in(4) ? 0 : 1; i < steps.size() - (one_in(4) ? 0 : 1); ++i) {
      const Step& step = one_in(20) ? steps[below(steps.size())] : steps[i];
      attributes.qp_state = step.to;
      if (ibv_modify_qp(pair, &attributes, step.mask) == 0 && step.to == IBV_QPS_RTS) ++successes_.moves_to_rts;
    }
  }

  ibv_sge sge() {
    const ibv_mr* region = any(objects_.regions);
    return {reinterpret_cast<std::uint64_t>(objects_.memory.data()) + below(8192), below(one_in(4) ? 9000 : 64),
            region != nullptr && !one_in(10) ? peek(region->lkey) : below(1U << 31)};
  }

  void post_receive() {
    std::array<ibv_sge, 4> sges{sge(), sge(), sge(), sge()};
    std::array<ibv_recv_wr, 3> chain{};
    for (std::size_t i = 0; i < chain.size(); ++i) {
      chain[i] = {.wr_id = i,
                  .next = i + 1 < chain.size() && one_in(2) ? &chain[i + 1] : nullptr,
                  .sg_list = one_in(20) ? nullptr : sges.data(),
                  .num_sge = static_cast<int>(below(5)) - (one_in(20) ? 3 : 0)};
    }
    ibv_recv_wr* bad = nullptr;
    const int error = one_in(3) ? objects_.context->ops.post_srq_recv(any(objects_.shared), chain.data(), &bad)
                                : objects_.context->ops.post_recv(any(objects_.pairs), chain.data(), &bad);
    if (error == 0) ++successes_.receives;
  }

  void post_send() {
    std::array<ibv_sge, 4> sges{sge(), sge(), sge(), sge()};
    std::array<ibv_send_wr, 20> chain{};
    for (std::size_t i = 0; i < chain.size(); ++i) {
      ibv_send_wr& request = chain[i];
      request.wr_id = i;
      request.next = i + 1 < chain.size() && one_in(2) ? &chain[i + 1] : nullptr;
      request.sg_list = one_in(30) ? nullptr : sges.data();
      request.num_sge = static_cast<int>(below(4)) - (one_in(30) ? 2 : 0);
      request.opcode = static_cast<ibv_wr_opcode>(below(one_in(8) ? 14 : 7));
      // The call reads inline data wherever the list points: use only our memory.
      request.send_flags = below(8);
      if (one_in(4)) {
        request.send_flags |= IBV_SEND_INLINE;
        request.num_sge = std::min(request.num_sge, 1);
        sges[0] = {reinterpret_cast<std::uint64_t>(objects_.memory.data()), below(64), 0};
      }
      const ibv_mr* region = any(objects_.regions);
      if (request.opcode == IBV_WR_SEND || request.opcode == IBV_WR_SEND_WITH_IMM) {
        const ibv_qp* peer = any(objects_.pairs);
        request.wr.ud = {any(objects_.addresses), peer != nullptr ? peek(peer->qp_num) : below(1U << 24), 0};
      } else if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        request.wr.atomic = {reinterpret_cast<std::uint64_t>(objects_.memory.data()) + below(64), 1, 2,
                             region != nullptr ? peek(region->rkey) : 5};
      } else {
        request.wr.rdma = {reinterpret_cast<std::uint64_t>(objects_.memory.data()) + below(8000),
                           region != nullptr ? peek(region->rkey) : 5};
      }
    }
    ibv_send_wr* bad = nullptr;
    if (objects_.context->ops.post_send(any(objects_.pairs), chain.data(), &bad) == 0) ++successes_.sends;
  }

  void poll() {
    std::array<ibv_wc, 40> completions;
    const int most = static_cast<int>(below(42)) - 1 - (one_in(2) ? 1 : 0);
    objects_.context->ops.poll_cq(any(objects_.queues), most, completions.data());
    objects_.context->ops.req_notify_cq(any(objects_.queues), odd_bits(1));
  }

  void poll_extended() {
    if (one_in(3)) {
      ibv_cq_init_attr_ex attributes{};
      attributes.cqe = below(40);
      attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
      attributes.flags = one_in(3) ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0;
      ibv_cq_ex* queue = ibv_create_cq_ex(objects_.context, &attributes);
      keep(objects_.extended_queues, queue);
      if (queue != nullptr) keep(objects_.queues, ibv_cq_ex_to_cq(queue));
    }
    ibv_cq_ex* queue = any(objects_.extended_queues);
    ibv_poll_cq_attr attributes{};
    const int started = one_in(20) ? 0 : objects_.polls.start_poll(queue, &attributes);
    if (started == 0) objects_.polls.next_poll(queue);
    if (one_in(4) && queue != nullptr) ibv_destroy_cq(ibv_cq_ex_to_cq(queue));
    if (started == 0) objects_.polls.end_poll(queue);
  }

  void post_extended() {
    if (one_in(3)) {
      ibv_qp_init_attr_ex attributes = extended(domain(), any(objects_.queues), any(objects_.queues));
      ibv_qp* pair = ibv_create_qp_ex(objects_.context, &attributes);
      if (pair != nullptr) {
        keep(objects_.extended_pairs, ibv_qp_to_qp_ex(pair));
        keep(objects_.pairs, pair);
      }
    }
    ibv_qp_ex* pair = any(objects_.extended_pairs);
    const ibv_qp_ex& call = objects_.posts;
    if (!one_in(20)) call.wr_start(pair);
    if (!one_in(20) && pair != nullptr) call.wr_rdma_write(pair, below(1U << 31), 4096);
    const ibv_sge piece = sge();
    call.wr_set_sge(pair, piece.lkey, piece.addr, piece.length);
    if (one_in(4)) call.wr_set_inline_data(pair, objects_.memory.data(), below(80));
    if (one_in(4) && pair != nullptr) ibv_destroy_qp(&pair->qp_base);
    one_in(5) ? call.wr_abort(pair) : void(call.wr_complete(pair));
  }

  void events() {
    ibv_cq* queue = nullptr;
    void* cookie = nullptr;
    if (ibv_get_cq_event(any(objects_.channels), &queue, &cookie) == 0) ibv_ack_cq_events(queue, 1);
    ibv_async_event event{};
    if (ibv_get_async_event(objects_.context, &event) == 0) ibv_ack_async_event(&event);
  }

  void ask() {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    ibv_srq_attr shared{};
    ibv_query_qp(any(objects_.pairs), &attributes, ~0, one_in(2) ? &init : nullptr);
    ibv_query_srq(any(objects_.shared), &shared);
    shared = {below(20), below(4), below(8)};
    ibv_modify_srq(any(objects_.shared), &shared, odd_bits(3));
    ibv_resize_cq(any(objects_.queues), static_cast<int>(below(100)) - 2);
    ibv_rereg_mr(any(objects_.regions), odd_bits(4), domain(), objects_.memory.data(), below(4096), odd_bits(6));
  }

  Objects& objects_;
  std::mt19937_64 random_;
  Successes successes_;
};

std::uint64_t seed() {
  const char* wanted = std::getenv("FAIRLEAD_TEST_SEED");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1;
}

/// Two ends on the same device that were not involved.
void expect_others_to_work() {
  ibverbs::TwoEnds ends(ibverbs::Apart::same_device);
  ibverbs::connect(ends.a, ends.b);
  ibverbs::connect(ends.b, ends.a);
  ASSERT_EQ(ends.b.receive(7, ends.b.sge(0, 64)), 0);
  ibverbs::Request request(8, IBV_WR_SEND, ends, ends.a.sge(0, 64));
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(ends.a.pair, &request, &bad), 0);
  EXPECT_EQ(ends.one_at_a().status, IBV_WC_SUCCESS);
  EXPECT_EQ(ends.one_at_b().status, IBV_WC_SUCCESS);
}

// The calls come from successive threads, so most objects are used by another thread than their creator.
TEST(RandomCalls, NeverCrashNorHang) {
  SCOPED_TRACE("FAIRLEAD_TEST_SEED=" + std::to_string(seed()));
  Objects objects;
  Caller caller(objects, seed());
  constexpr int kThreads = 20;
  for (int thread = 0; thread < kThreads; ++thread) {
    std::jthread([&caller] {
      for (int i = 0; i < kCalls / kThreads; ++i) caller.call();
    }).join();
  }
  // Most calls fail, but not all.
  EXPECT_GT(objects.domains.count(), 20u);
  EXPECT_GT(objects.regions.count(), 20u);
  EXPECT_GT(objects.queues.count(), 20u);
  EXPECT_GT(objects.channels.count(), 20u);
  EXPECT_GT(objects.shared.count(), 20u);
  EXPECT_GT(objects.pairs.count(), 20u);
  EXPECT_GT(objects.addresses.count(), 20u);
  EXPECT_GT(caller.successes().moves_to_rts, 20u);
  EXPECT_GT(caller.successes().sends, 20u);
  EXPECT_GT(caller.successes().receives, 20u);
  expect_others_to_work();
}

// An object is destroyed while another thread is inside a call with it.
TEST(RandomCalls, OfTwoThreadsWithTheSameObjectsNeverCrashNorHang) {
  SCOPED_TRACE("FAIRLEAD_TEST_SEED=" + std::to_string(seed()));
  Objects objects;
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 1; thread <= 2; ++thread) {
    threads.emplace_back([&objects, thread] {
      Caller caller(objects, 1000 * thread + seed());
      for (int i = 0; i < kCalls; ++i) caller.call();
    });
  }
  threads.clear();
  EXPECT_GT(objects.pairs.count(), 20u);
  expect_others_to_work();
}

}  // namespace
}  // namespace fairlead
