// Thousands of verbs calls at random, on live, dead and null objects, with arguments right and wrong: nothing crashes,
// nothing hangs, and every object can be destroyed in the end. One seed, told; another by FAIRLEAD_SEED.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "doors/ibverbs/abi.hpp"

namespace {

constexpr int kCalls = 10'000;
constexpr std::size_t kKept = 24;  // pointers of a kind, dead ones among them

class Caller {
 public:
  explicit Caller(std::uint64_t seed) : random_(seed) {
    ibv_device** list = ibv_get_device_list(nullptr);
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ::fcntl(context_->async_fd, F_SETFL, O_NONBLOCK);
    ibv_query_gid(context_, 1, 0, &gid_);
  }
  ~Caller() { EXPECT_EQ(ibv_close_device(context_), 0); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void call() {
    switch (below(24)) {
      case 0:
        return keep(domains_, ibv_alloc_pd(context_));
      case 1:
        return void(ibv_dealloc_pd(any(domains_)));
      case 2:
        return keep(regions_, ibv_reg_mr(any(domains_), memory_.data() + below(64), below(5000), odd_bits(8)));
      case 3:
        return void(ibv_dereg_mr(any(regions_)));
      case 4:
        return keep(queues_, ibv_create_cq(context_, static_cast<int>(below(40)) - 2, nullptr, any(channels_),
                                           static_cast<int>(below(6)) - 1));
      case 5:
        return void(ibv_destroy_cq(any(queues_)));
      case 6:
        return add_channel();
      case 7:
        return void(ibv_destroy_comp_channel(any(channels_)));
      case 8:
        return add_shared();
      case 9:
        return void(ibv_destroy_srq(any(shared_)));
      case 10:
      case 11:
        return add_pair();
      case 12:
        return void(ibv_destroy_qp(any(pairs_)));
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
      default:
        return ask();
    }
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool one_in(std::uint32_t chances) { return below(chances) == 0; }
  int odd_bits(unsigned count) { return static_cast<int>(below(1U << count)); }

  template <typename Object>
  Object* any(std::vector<Object*>& objects) {
    return objects.empty() || one_in(20) ? nullptr : objects[below(static_cast<std::uint32_t>(objects.size()))];
  }
  template <typename Object>
  void keep(std::vector<Object*>& objects, Object* object) {
    if (object == nullptr) return;
    if (objects.size() < kKept) return objects.push_back(object);
    objects[below(kKept)] = object;
  }

  void add_channel() {
    ibv_comp_channel* channel = ibv_create_comp_channel(context_);
    if (channel != nullptr) ::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    keep(channels_, channel);
  }

  void add_shared() {
    ibv_srq_init_attr attributes{};
    attributes.attr = {below(20), below(4), below(8)};
    keep(shared_, ibv_create_srq(any(domains_), &attributes));
  }

  void add_pair() {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = any(queues_);
    attributes.recv_cq = any(queues_);
    attributes.srq = one_in(3) ? any(shared_) : nullptr;
    attributes.cap = {below(20), below(20), below(4), below(4), below(100)};
    attributes.qp_type = one_in(10) ? static_cast<ibv_qp_type>(below(12)) : static_cast<ibv_qp_type>(2 + below(3));
    attributes.sq_sig_all = odd_bits(1);
    keep(pairs_, ibv_create_qp(any(domains_), &attributes));
  }

  ibv_ah_attr vector() {
    ibv_ah_attr vector{};
    vector.grh.dgid = one_in(20) ? ibv_gid{} : gid_;
    vector.is_global = one_in(20) ? 0 : 1;
    vector.port_num = one_in(20) ? 7 : 1;
    return vector;
  }

  void add_address() {
    ibv_ah_attr attributes = vector();
    keep(addresses_, ibv_create_ah(any(domains_), &attributes));
    if (one_in(2)) ibv_destroy_ah(any(addresses_));
  }

  void modify() {
    ibv_qp* pair = any(pairs_);
    ibv_qp_attr attributes{};
    attributes.qp_state = static_cast<ibv_qp_state>(below(one_in(10) ? 9 : 4));
    attributes.path_mtu = IBV_MTU_1024;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attributes.ah_attr = vector();
    ibv_qp* peer = any(pairs_);
    attributes.dest_qp_num = peer != nullptr ? peer->qp_num : below(1U << 24);
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
    attributes.port_num = 1;
    attributes.timeout = 1;
    attributes.retry_cnt = attributes.rnr_retry = static_cast<std::uint8_t>(below(3));
    attributes.min_rnr_timer = 1;
    constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const std::array<int, 8> masks{
        IBV_QP_STATE,
        kInit | IBV_QP_ACCESS_FLAGS,
        kInit | IBV_QP_QKEY,
        kRtr,
        kRtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
        IBV_QP_STATE | IBV_QP_SQ_PSN,
        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
        odd_bits(22)};
    // Most often the one that fits, so that pairs come to RTS and traffic flows.
    for (const int mask : masks) ibv_modify_qp(pair, &attributes, one_in(8) ? masks[below(masks.size())] : mask);
  }

  ibv_sge sge() {
    const ibv_mr* region = any(regions_);
    return {reinterpret_cast<std::uint64_t>(memory_.data()) + below(8192), below(one_in(4) ? 9000 : 64),
            region != nullptr && !one_in(10) ? region->lkey : below(1U << 31)};
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
    if (one_in(3)) {
      context_->ops.post_srq_recv(any(shared_), chain.data(), &bad);
    } else {
      context_->ops.post_recv(any(pairs_), chain.data(), &bad);
    }
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
      // Inline data is read during the call, wherever the list says: only what is ours.
      request.send_flags = below(8);
      if (one_in(4)) {
        request.send_flags |= IBV_SEND_INLINE;
        request.num_sge = std::min(request.num_sge, 1);
        sges[0] = {reinterpret_cast<std::uint64_t>(memory_.data()), below(64), 0};
      }
      const ibv_mr* region = any(regions_);
      if (request.opcode == IBV_WR_SEND || request.opcode == IBV_WR_SEND_WITH_IMM) {
        const ibv_qp* peer = any(pairs_);
        request.wr.ud = {any(addresses_), peer != nullptr ? peer->qp_num : below(1U << 24), 0};
      } else if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        request.wr.atomic = {reinterpret_cast<std::uint64_t>(memory_.data()) + below(64), 1, 2,
                             region != nullptr ? region->rkey : 5};
      } else {
        request.wr.rdma = {reinterpret_cast<std::uint64_t>(memory_.data()) + below(8000),
                           region != nullptr ? region->rkey : 5};
      }
    }
    ibv_send_wr* bad = nullptr;
    context_->ops.post_send(any(pairs_), chain.data(), &bad);
  }

  void poll() {
    std::array<ibv_wc, 40> completions;
    context_->ops.poll_cq(any(queues_), static_cast<int>(below(42)) - 1 - (one_in(2) ? 1 : 0), completions.data());
    context_->ops.req_notify_cq(any(queues_), odd_bits(1));
  }

  void events() {
    ibv_cq* queue = nullptr;
    void* cookie = nullptr;
    if (ibv_get_cq_event(any(channels_), &queue, &cookie) == 0) ibv_ack_cq_events(queue, 1);
    ibv_async_event event{};
    if (ibv_get_async_event(context_, &event) == 0) ibv_ack_async_event(&event);
  }

  void ask() {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    ibv_srq_attr shared{};
    ibv_query_qp(any(pairs_), &attributes, ~0, one_in(2) ? &init : nullptr);
    ibv_query_srq(any(shared_), &shared);
    shared = {below(20), below(4), below(8)};
    ibv_modify_srq(any(shared_), &shared, odd_bits(3));
    ibv_resize_cq(any(queues_), static_cast<int>(below(100)) - 2);
    ibv_rereg_mr(any(regions_), odd_bits(4), any(domains_), memory_.data(), below(4096), odd_bits(6));
  }

  std::mt19937_64 random_;
  ibv_context* context_ = nullptr;
  ibv_gid gid_{};
  std::array<char, 32768> memory_{};
  std::vector<ibv_pd*> domains_;
  std::vector<ibv_mr*> regions_;
  std::vector<ibv_cq*> queues_;
  std::vector<ibv_comp_channel*> channels_;
  std::vector<ibv_srq*> shared_;
  std::vector<ibv_qp*> pairs_;
  std::vector<ibv_ah*> addresses_;
};

// The calls come from one thread after the other, so that most objects are used by others than their maker.
TEST(RandomCalls, NeverCrashNorHang) {
  const char* wanted = std::getenv("FAIRLEAD_SEED");
  const std::uint64_t seed = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1;
  SCOPED_TRACE("FAIRLEAD_SEED=" + std::to_string(seed));
  Caller caller(seed);
  constexpr int kThreads = 20;
  for (int thread = 0; thread < kThreads; ++thread) {
    std::jthread([&caller] {
      for (int i = 0; i < kCalls / kThreads; ++i) caller.call();
    }).join();
  }
}

}  // namespace
