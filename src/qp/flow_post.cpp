// What applications post. A request is copied into the ring; its keys are looked at when its turn comes.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "qp/flows.hpp"

namespace fairlead::qp {

using verbs::QpState;
using verbs::QpType;
using verbs::SendOpcode;
using verbs::WcStatus;

bool Flows::is_near(FlowHandle handle) {
  const Flow* flow = find(handle);
  return flow != nullptr && flow->has_peer && shm::Transport::has(flow->peer);
}

int Flows::post_send(FlowHandle handle, std::span<const verbs::SendRequest> requests, std::size_t& taken,
                     base::Instant now) {
  taken = 0;
  now_ = now;
  Flow* flow = find(handle);
  if (flow == nullptr || flow->is_closing) return EINVAL;
  int error = 0;
  for (const verbs::SendRequest& request : requests) {
    error = take_send(*flow, request);
    if (error != 0) break;
    ++taken;
  }
  if (taken != 0 && !start_near(*flow, now)) pump(*flow, now);
  return error;
}

int Flows::post_send_all(FlowHandle handle, std::span<const verbs::SendRequest> requests, base::Instant now) {
  now_ = now;
  Flow* flow = find(handle);
  if (flow == nullptr || flow->is_closing) return EINVAL;
  const std::uint32_t tail = flow->tail;
  for (const verbs::SendRequest& request : requests) {
    if (const int error = take_send(*flow, request); error != 0) {
      flow->tail = tail;  // nobody has seen them yet
      return error;
    }
  }
  if (!start_near(*flow, now)) pump(*flow, now);
  return 0;
}

int Flows::take_send(Flow& flow, const verbs::SendRequest& request) {
  if (flow.state() < QpState::rts) return EINVAL;
  const verbs::QpCapacity& capacity = flow.plan.capacity;
  if (request.sges.size() > capacity.max_send_sge) return EINVAL;
  if (request.opcode > SendOpcode::fetch_add) return EINVAL;
  const bool is_send = request.opcode == SendOpcode::send || request.opcode == SendOpcode::send_imm;
  if (flow.plan.type == QpType::ud && (!is_send || request.to == nullptr)) return EINVAL;
  if (flow.plan.type == QpType::uc && request.opcode >= SendOpcode::read) return EINVAL;
  std::uint64_t length = 0;
  for (const verbs::Sge& sge : request.sges) length += sge.length;
  const bool is_inlined = (request.flags & verbs::send_flags::inlined) != 0;
  if (is_inlined && (request.opcode >= SendOpcode::read || length > capacity.max_inline)) return EINVAL;
  if (flow.tail - accounts_[flow.index].sends.count() >= capacity.max_send_wr) return ENOMEM;

  const std::uint32_t number = flow.tail;
  SendEntry& entry = flow.entry(number);
  entry.id = request.id;
  entry.remote_addr = request.remote_addr;
  entry.compare_add = request.compare_add;
  entry.swap = request.swap;
  entry.length = length;
  entry.rkey = request.rkey;
  entry.imm = request.imm;
  entry.flights = 0;
  entry.opcode = request.opcode;
  entry.flags = static_cast<std::uint8_t>(request.flags);
  entry.status = WcStatus::success;
  entry.cause = verbs::Cause::none;
  entry.is_done = entry.is_sent = false;
  entry.sge_count = 0;
  if (flow.plan.type == QpType::ud) {
    entry.to = address_of(*request.to, request.remote_qpn);
    entry.remote_qpn = request.remote_qpn;
    entry.remote_qkey = (request.remote_qkey & 0x8000'0000U) != 0 ? flow.attributes.qkey : request.remote_qkey;
    entry.traffic_class = request.to->traffic_class;
  }
  if (is_inlined) {
    std::byte* to = flow.inlined_of(number);
    for (const verbs::Sge& sge : request.sges) {
      if (sge.length != 0) std::memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.length);
      to += sge.length;
    }
  } else {
    entry.sge_count = static_cast<std::uint16_t>(request.sges.size());
    std::ranges::copy(request.sges, flow.sges_of(number).begin());
  }
  ++flow.tail;
  return 0;
}

int Flows::post_receive(FlowHandle handle, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) {
  taken = 0;
  Flow* flow = find(handle);
  if (flow == nullptr || flow->is_closing || flow->plan.has_shared_pool || flow->state() == QpState::reset)
    return EINVAL;
  Pool& pool = pools_[flow->pool];
  for (const verbs::ReceiveRequest& request : requests) {
    if (request.sges.size() > flow->plan.capacity.max_recv_sge) return EINVAL;
    if (pool.tail - flow->receives_begin - accounts_[flow->index].receives.count() >= flow->plan.capacity.max_recv_wr)
      return ENOMEM;
    if (flow->state() == QpState::err) {
      ++pool.head;
      ++pool.tail;
      complete_receive(*flow, request.id, {.status = WcStatus::wr_flush_err, .opcode = verbs::WcOpcode::receive},
                       false);
    } else {
      pool.post(request);
    }
    ++taken;
  }
  return 0;
}

int Flows::post_to_pool(PoolHandle handle, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) {
  taken = 0;
  Pool* pool = find_pool(handle);
  if (pool == nullptr) return EINVAL;
  for (const verbs::ReceiveRequest& request : requests) {
    if (request.sges.size() > pool->plan.sges) return EINVAL;
    if (pool->count() >= pool->plan.depth) return ENOMEM;
    pool->post(request);
    ++taken;
  }
  return 0;
}

}  // namespace fairlead::qp
