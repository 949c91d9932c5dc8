#pragma once
// Two ends that communicate through the C calls alone, as two programs would. They use one device, or two if the host
// has two addresses, so that messages travel between engines.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/verbs.hpp>

#include "doors/ibverbs/abi.hpp"

namespace fairlead::ibverbs {

enum class Apart { same_device, two_devices };

inline const char* to_string(Apart apart) {
  return apart == Apart::same_device ? "same_device" : "two_devices";
}

/// Chooses the devices of the test: two addresses of one family, or the only one twice. Must run before any device
/// query.
inline bool choose_devices() {
  std::string addresses;
  int count = 0;
  for (const verbs::Device& device : verbs::devices().value_or(std::vector<verbs::Device>())) {
    if (device.address.find(':') != std::string::npos || count == 2) continue;
    addresses += (count++ == 0 ? "" : ",") + device.address;
  }
  return ::setenv("FAIRLEAD_DEVICE", addresses.c_str(), 0) == 0 && ::setenv("FAIRLEAD_DEVICES", "2", 0) == 0;
}
inline const bool are_devices_chosen = choose_devices();

inline ibv_context* open_for_test(unsigned index) {
  EXPECT_TRUE(are_devices_chosen);
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ibv_context* context = static_cast<int>(index) < count ? ibv_open_device(list[index]) : nullptr;
  ibv_free_device_list(list);
  return context;
}

struct EndOptions {
  ibv_qp_type type = IBV_QPT_RC;
  bool has_shared = false;
  std::uint32_t max_send = 32, max_receive = 32;
  int queue_capacity = 256;
  unsigned region_rights =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
};

/// One side: everything that a small program needs, destroyed in order and without errors.
struct End {
  static constexpr std::size_t kMemory = 1 << 20;

  End(ibv_context* opened, const EndOptions& options = {}) : context(opened), memory(kMemory) {
    ::fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
    domain = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    ::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    queue = ibv_create_cq(context, options.queue_capacity, this, channel, 0);
    region = ibv_reg_mr_iova2(domain, memory.data(), memory.size(), reinterpret_cast<std::uint64_t>(memory.data()),
                              options.region_rights);
    ibv_query_gid(context, 1, 0, &gid);
    if (options.has_shared) {
      ibv_srq_init_attr shared_attributes{};
      shared_attributes.attr = {.max_wr = options.max_receive, .max_sge = 2, .srq_limit = 0};
      shared = ibv_create_srq(domain, &shared_attributes);
    }
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue;
    attributes.srq = shared;
    attributes.qp_type = options.type;
    attributes.cap = {options.max_send, options.max_receive, 4, 4, 256};
    pair = ibv_create_qp(domain, &attributes);
    EXPECT_NE(pair, nullptr);
  }
  ~End() {
    EXPECT_EQ(pair != nullptr ? ibv_destroy_qp(pair) : 0, 0);
    EXPECT_EQ(shared != nullptr ? ibv_destroy_srq(shared) : 0, 0);
    EXPECT_EQ(ibv_dereg_mr(region), 0);
    EXPECT_EQ(ibv_destroy_cq(queue), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    EXPECT_EQ(ibv_dealloc_pd(domain), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uint64_t>(memory.data()) + offset; }
  ibv_sge sge(std::size_t offset, std::uint32_t length) const { return {at(offset), length, region->lkey}; }
  /// The engine's lock orders a peer's accesses to `memory` with those of the test.
  ibv_qp_state state() const {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(pair, &attributes, IBV_QP_STATE, &init), 0);
    return attributes.qp_state;
  }
  std::uint64_t word(std::size_t offset) const {
    (void)state();
    std::uint64_t value = 0;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  }
  int receive(std::uint64_t id, ibv_sge to) const {
    ibv_recv_wr request{.wr_id = id, .next = nullptr, .sg_list = &to, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return shared != nullptr ? ibv_post_srq_recv(shared, &request, &bad) : ibv_post_recv(pair, &request, &bad);
  }
  /// Returns the available asynchronous events, after acknowledging them.
  std::vector<ibv_event_type> events() const {
    std::vector<ibv_event_type> all;
    ibv_async_event event{};
    while (ibv_get_async_event(context, &event) == 0) {
      const void* element = event.event_type == IBV_EVENT_CQ_ERR              ? static_cast<void*>(queue)
                            : event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED ? static_cast<void*>(shared)
                                                                              : static_cast<void*>(pair);
      EXPECT_EQ(event.element.qp, element);
      ibv_ack_async_event(&event);
      all.push_back(event.event_type);
    }
    EXPECT_EQ(errno, EAGAIN);
    return all;
  }

  ibv_context* context;
  ibv_pd* domain = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* queue = nullptr;
  ibv_mr* region = nullptr;
  ibv_srq* shared = nullptr;
  ibv_qp* pair = nullptr;
  ibv_gid gid{};
  std::vector<std::byte> memory;
  std::vector<ibv_wc> got;  // polled, but not returned yet
};

struct Connection {
  unsigned rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  std::uint8_t reads = 4, reads_there = 4;  // max_rd_atomic of one side, max_dest_rd_atomic of the other
  std::uint8_t timeout = 17, retries = 7;   // 4 s in all, for slow machines
  std::uint8_t receiver_retries = 7;
  std::uint32_t other_number = 0;  // replaces the peer's number, if not 0
};

inline constexpr std::uint32_t kQueueKeyOfEnds = 0x1111'2222;
inline constexpr std::uint32_t kFirstPsn = 0xFF'FFFE;  // soon wraps beyond 24 bits

/// Returns the attributes that a transition to this state requires.
inline int mask_to(ibv_qp_type type, ibv_qp_state to) {
  const bool is_rc = type == IBV_QPT_RC, is_ud = type == IBV_QPT_UD;
  switch (to) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
      if (is_ud) return IBV_QP_STATE;
      return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_SQ_PSN |
             (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
    default:
      return IBV_QP_STATE;
  }
}

inline ibv_qp_attr attributes_of(const End& peer, const Connection& connection) {
  ibv_qp_attr attributes{};
  attributes.path_mtu = IBV_MTU_1024;
  attributes.qkey = kQueueKeyOfEnds;
  attributes.rq_psn = attributes.sq_psn = kFirstPsn;
  attributes.dest_qp_num = connection.other_number != 0 ? connection.other_number : peer.pair->qp_num;
  attributes.qp_access_flags = connection.rights;
  attributes.ah_attr.grh.dgid = peer.gid;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = attributes.port_num = 1;
  attributes.max_rd_atomic = connection.reads;
  attributes.max_dest_rd_atomic = connection.reads_there;
  attributes.min_rnr_timer = 1;
  attributes.timeout = connection.timeout;
  attributes.retry_cnt = connection.retries;
  attributes.rnr_retry = connection.receiver_retries;
  return attributes;
}

inline int move_to(const End& end, ibv_qp_attr attributes, ibv_qp_state to) {
  attributes.qp_state = to;
  return ibv_modify_qp(end.pair, &attributes, mask_to(end.pair->qp_type, to));
}

inline void connect(const End& end, const End& peer, ibv_qp_state up_to = IBV_QPS_RTS,
                    const Connection& connection = {}) {
  const ibv_qp_attr attributes = attributes_of(peer, connection);
  for (const ibv_qp_state step : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (step > up_to) break;
    ASSERT_EQ(move_to(end, attributes, step), 0) << step;
  }
}

inline void poll_once(End& end) {
  std::array<ibv_wc, 16> some;
  const int count = ibv_poll_cq(end.queue, some.size(), some.data());
  if (count > 0) end.got.insert(end.got.end(), some.begin(), some.begin() + count);
}

/// Returns up to `most` completions of `from`. Polls both ends, as two programs would. Gives up after half a minute.
inline std::vector<ibv_wc> take(End& from, End& other, std::size_t most) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (from.got.size() < most && std::chrono::steady_clock::now() < end) {
    poll_once(from);
    poll_once(other);
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, from.got.size()));
  std::vector<ibv_wc> taken(from.got.begin(), from.got.begin() + count);
  from.got.erase(from.got.begin(), from.got.begin() + count);
  return taken;
}

/// Returns a completion that must come, or IBV_WC_GENERAL_ERR if it does not.
inline ibv_wc take_one(End& from, End& other) {
  const auto all = take(from, other, 1);
  EXPECT_EQ(all.size(), 1u);
  ibv_wc none{};
  none.status = IBV_WC_GENERAL_ERR;
  return all.empty() ? none : all[0];
}

/// Two ends, created but not connected.
struct TwoEnds {
  explicit TwoEnds(Apart apart, const EndOptions& of_a = {}, const EndOptions& of_b = {})
      : a(open_for_test(0), of_a), b(open_for_test(apart == Apart::same_device ? 0 : 1), of_b) {}

  std::vector<ibv_wc> at_a(std::size_t most) { return take(a, b, most); }
  std::vector<ibv_wc> at_b(std::size_t most) { return take(b, a, most); }
  ibv_wc one_at_a() { return take_one(a, b); }
  ibv_wc one_at_b() { return take_one(b, a); }

  End a, b;
};

/// A request from a to b with the usual values.
struct Request : ibv_send_wr {
  Request(std::uint64_t id, ibv_wr_opcode its_opcode, const TwoEnds& ends, ibv_sge from = {},
          std::size_t remote_offset = 0)
      : ibv_send_wr{}, piece(from) {
    wr_id = id;
    opcode = its_opcode;
    send_flags = IBV_SEND_SIGNALED;
    sg_list = &piece;
    num_sge = from.length != 0 ? 1 : 0;
    if (its_opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || its_opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      wr.atomic = {.remote_addr = ends.b.at(remote_offset), .compare_add = 1, .swap = 0, .rkey = ends.b.region->rkey};
    } else {
      wr.rdma = {.remote_addr = ends.b.at(remote_offset), .rkey = ends.b.region->rkey};
    }
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  int post(const End& end) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(end.pair, this, &bad);
  }

  ibv_sge piece;
};

}  // namespace fairlead::ibverbs
