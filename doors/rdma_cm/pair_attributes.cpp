#include "doors/rdma_cm/pair_attributes.hpp"

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>

#include "doors/rdma_cm/addressing.hpp"

namespace fairlead::rdma_cm {
namespace {

constexpr std::uint8_t kPort = 1;
constexpr std::uint8_t kHopLimit = 64;
// 0.64 ms until the requester repeats a message that found no receive. The kernel uses 0, which means 655 ms: a program
// that posts its receives late, like fio's, would stand still most of the time.
constexpr std::uint8_t kReceiverNotReady = 12;
constexpr std::uint8_t kAckTimeout = 18;  // 4.096 us << 18: one second

std::uint16_t lid_of(const Ip& ip) {
  return static_cast<std::uint16_t>(ip[14] << 8 | ip[15]);
}

void fill_init(const Id& id, ib_uverbs_qp_attr& to) {
  to.qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  to.port_num = kPort;
  if (id.connection.is_datagram()) {
    to.qp_attr_mask |= IBV_QP_QKEY;
    to.qkey = id.terms.qkey != 0 ? id.terms.qkey : kDatagramKey;
    return;
  }
  to.qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
  if (!id.connection.has_begun()) return;
  to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (id.connection.peer_terms().responder_resources != 0)
    to.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

void fill_receive(const Id& id, ib_uverbs_qp_attr& to) {
  const Terms& terms = id.connection.peer_terms();
  to.qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  to.ah_attr = way_to_peer(id);
  to.path_mtu = IBV_MTU_4096;
  to.dest_qp_num = terms.qp_num;
  to.rq_psn = id.connection.psn();
  if (id.qp_type == IBV_QPT_UC) return;
  to.qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  to.max_dest_rd_atomic = terms.responder_resources;
  to.min_rnr_timer = kReceiverNotReady;
}

void fill_send(const Id& id, ib_uverbs_qp_attr& to) {
  const Terms& terms = id.connection.peer_terms();
  to.qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  to.sq_psn = id.connection.peer_psn();
  if (id.qp_type == IBV_QPT_UC) return;
  to.qp_attr_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  to.timeout = id.ack_timeout != 0 ? id.ack_timeout : kAckTimeout;
  to.retry_cnt = id.terms.retry_count != 0 ? id.terms.retry_count : terms.retry_count;
  to.rnr_retry = terms.rnr_retry_count;
  to.max_rd_atomic = terms.initiator_depth;
}

}  // namespace

namespace {

ib_uverbs_ah_attr way_to(const Id& id, const Ip& ip, std::uint8_t hop_limit) {
  ib_uverbs_ah_attr way{};
  std::memcpy(way.grh.dgid, ip.data(), sizeof way.grh.dgid);
  way.grh.hop_limit = hop_limit;
  way.grh.traffic_class = id.tos;
  way.is_global = 1;
  way.port_num = kPort;
  return way;
}

bool has_lids(const Id& id) {
  const ibverbs::Identity* const identity = find_identity(id.device);
  return identity != nullptr && identity->personality == fairlead::verbs::Personality::ib;
}

}  // namespace

ib_uverbs_ah_attr way_to_peer(const Id& id) {
  ib_uverbs_ah_attr way = way_to(id, id.peer, kHopLimit);
  if (has_lids(id)) way.dlid = lid_of(id.peer);
  return way;
}

ib_uverbs_ah_attr way_to_group(const Id& id, const Ip& group) {
  constexpr std::uint8_t kThisNetwork = 1;
  constexpr unsigned kLidFirst = 0xC000, kLids = 0x3FFF;  // the last LID has a special meaning
  ib_uverbs_ah_attr way = way_to(id, group, kThisNetwork);
  if (has_lids(id)) way.dlid = static_cast<std::uint16_t>(kLidFirst + lid_of(group) % kLids);
  return way;
}

std::expected<ib_uverbs_qp_attr, int> pair_attributes(const Id& id, unsigned state) {
  if (state > IBV_QPS_ERR) return std::unexpected(EINVAL);
  if (!id.has_device) return std::unexpected(EINVAL);
  const State now = id.connection.state();
  const bool knows_peer =
      (now >= State::requested && now <= State::resting) || (now == State::over && id.connection.peer_name() != 0);
  ib_uverbs_qp_attr to{};
  to.qp_state = state;
  to.cur_qp_state = state;
  to.pkey_index = 0;
  to.port_num = kPort;
  if (state == IBV_QPS_INIT) {
    fill_init(id, to);
  } else if (state == IBV_QPS_RTR && knows_peer && !id.connection.is_datagram()) {
    fill_receive(id, to);
  } else if (state == IBV_QPS_RTS && knows_peer && !id.connection.is_datagram()) {
    fill_send(id, to);
  } else {
    return std::unexpected(EINVAL);
  }
  return to;
}

}  // namespace fairlead::rdma_cm
