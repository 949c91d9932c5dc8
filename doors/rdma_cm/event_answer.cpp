#include "doors/rdma_cm/event_answer.hpp"

#include <cstring>
#include <utility>

#include "doors/rdma_cm/pair_attributes.hpp"

namespace fairlead::rdma_cm {

rdma_ucm_event_resp answer_of(const Id& id, const Told& told) {
  rdma_ucm_event_resp answer{};
  answer.uid = id.uid;
  answer.id = id.handle;
  answer.event = std::to_underlying(told.event);
  answer.status = static_cast<std::uint32_t>(told.status);
  const Terms& terms = told.terms;
  if (id.connection.is_datagram()) {
    rdma_ucm_ud_param& to = answer.param.ud;
    to.qp_num = terms.qp_num;
    to.qkey = terms.qkey;
    if (told.event == Event::established) to.ah_attr = way_to_peer(id);
    std::memcpy(to.private_data, told.data.bytes.data(), told.data.length);
    to.private_data_len = told.data.length;
    return answer;
  }
  rdma_ucm_conn_param& to = answer.param.conn;
  to.qp_num = terms.qp_num;
  to.qkey = terms.qkey;
  std::memcpy(to.private_data, told.data.bytes.data(), told.data.length);
  to.private_data_len = told.data.length;
  to.srq = terms.has_srq;
  to.responder_resources = terms.responder_resources;
  to.initiator_depth = terms.initiator_depth;
  to.flow_control = terms.flow_control;
  to.retry_count = terms.retry_count;
  to.rnr_retry_count = terms.rnr_retry_count;
  return answer;
}

rdma_ucm_event_resp answer_of_join(const Id& id, const Membership& membership) {
  constexpr std::uint32_t kGroupNumber = 0xFFFFFF;  // stands for all attached queue pairs
  rdma_ucm_event_resp answer{};
  answer.uid = membership.uid;
  answer.id = membership.handle;
  answer.event = std::to_underlying(Event::multicast_join);
  answer.param.ud.qp_num = kGroupNumber;
  answer.param.ud.qkey = id.terms.qkey != 0 ? id.terms.qkey : kDatagramKey;
  answer.param.ud.ah_attr = way_to_group(id, membership.group);
  return answer;
}

}  // namespace fairlead::rdma_cm
