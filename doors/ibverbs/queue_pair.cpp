// Queue pairs: create, modify, query, destroy.
#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/fail_pair.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/operations.hpp"
#include "doors/ibverbs/pair_features.hpp"
#include "doors/ibverbs/refusal.hpp"

#include <cstring>

namespace fairlead::ibverbs {
namespace {

ibv_qp_cap to_abi(const verbs::QpCapacity& capacity) {
  return {.max_send_wr = capacity.max_send_wr,
          .max_recv_wr = capacity.max_recv_wr,
          .max_send_sge = capacity.max_send_sge,
          .max_recv_sge = capacity.max_recv_sge,
          .max_inline_data = capacity.max_inline};
}

/// Creates the object, but does not publish it yet.
Pair* make(ibv_pd* pd, ibv_qp_init_attr& attributes) {
  Domain* domain = find(pd);
  Queue* send_queue = find(attributes.send_cq);
  Queue* receive_queue = find(attributes.recv_cq);
  SharedReceive* shared = find(attributes.srq);
  const bool is_initiator = attributes.qp_type == IBV_QPT_XRC_SEND;
  if (domain == nullptr)
    return refuse(EINVAL, "ibv_create_qp: pd is no protection domain: pass what ibv_alloc_pd gave");
  if (send_queue == nullptr || (receive_queue == nullptr && !is_initiator))
    return refuse(EINVAL, "ibv_create_qp: send_cq or recv_cq is no completion queue: pass what ibv_create_cq gave");
  if (attributes.srq != nullptr && shared == nullptr)
    return refuse(EINVAL, "ibv_create_qp: srq is no shared receive queue: pass what ibv_create_srq gave, or null");
  if (attributes.qp_type == IBV_QPT_XRC_RECV)
    return refuse(EINVAL, "ibv_create_qp: IBV_QPT_XRC_RECV needs an XRC domain: create it with ibv_create_qp_ex");
  if (const auto absent = absent_type(raw(attributes.qp_type))) return refuse(tell_absent(*absent));
  Pair* pair = table<Pair>().make(domain->owner);
  if (pair == nullptr) return refuse(ENOMEM, "ibv_create_qp: this process has too many queue pairs: destroy some");
  const ibv_qp_cap& cap = attributes.cap;
  auto native =
      verbs::QueuePair::create(domain->native, {.type = static_cast<verbs::QpType>(raw(attributes.qp_type)),
                                                .send_queue = &*send_queue->native,
                                                .receive_queue = is_initiator ? nullptr : &*receive_queue->native,
                                                .shared_receive = shared != nullptr ? &*shared->native : nullptr,
                                                .capacity = {.max_send_wr = cap.max_send_wr,
                                                             .max_recv_wr = cap.max_recv_wr,
                                                             .max_send_sge = cap.max_send_sge,
                                                             .max_recv_sge = cap.max_recv_sge,
                                                             .max_inline = cap.max_inline_data},
                                                .signals_all = attributes.sq_sig_all != 0,
                                                .cookie = pair->qp_base.handle});
  if (!native) {
    table<Pair>().discard(pair);
    // The device's attributes do not tell how much may be inlined. So libfabric tries, and refusals are no news.
    if (cap.max_inline_data <= domain->owner.native.limits().max_inline)
      note_refusal("ibv_create_qp: " + native.error().message);
    return refuse(native.error().system_errno);
  }
  pair->native.emplace(std::move(*native));
  pair->signals_all = attributes.sq_sig_all != 0;
  ibv_qp& face = pair->qp_base;
  face.context = pd->context;
  face.qp_context = attributes.qp_context;
  face.pd = pd;
  face.send_cq = attributes.send_cq;
  face.recv_cq = attributes.recv_cq;
  face.srq = attributes.srq;
  face.qp_num = pair->native->number();
  face.state = IBV_QPS_RESET;
  face.qp_type = attributes.qp_type;
  attributes.cap = to_abi(pair->native->capacity());
  return pair;
}

/// Programs pass a queue pair its regions' access flags; these have no meaning for it.
constexpr unsigned kOfRegionsOnly =
    IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

/// Returns the attributes that programs set for both ends of XRC as for RC, and that the kernel ignores.
std::uint32_t meaningless_for(unsigned type) {
  if (type == IBV_QPT_XRC_SEND) return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return type == IBV_QPT_XRC_RECV ? IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY : 0;
}

/// Stores the state where programs read it. Two threads may modify a queue pair at once.
void show_state(Pair& pair, ibv_qp_state state) {
  std::atomic_ref(pair.qp_base.state).store(state, std::memory_order_relaxed);
}

verbs::QpAttributes to_native(const ibv_qp_attr& from) {
  verbs::QpAttributes to;
  to.state = static_cast<verbs::QpState>(raw(from.qp_state));
  to.cur_state = static_cast<verbs::QpState>(raw(from.cur_qp_state));
  to.path_mtu = static_cast<verbs::Mtu>(raw(from.path_mtu));
  to.path_mig_state = static_cast<std::uint8_t>(raw(from.path_mig_state));
  to.qkey = from.qkey;
  to.rq_psn = from.rq_psn;
  to.sq_psn = from.sq_psn;
  to.dest_qp_num = from.dest_qp_num;
  to.access_flags = from.qp_access_flags & ~kOfRegionsOnly;
  to.av = ibverbs::to_native(from.ah_attr);
  to.alt_av = ibverbs::to_native(from.alt_ah_attr);
  to.pkey_index = from.pkey_index;
  to.en_sqd_async_notify = from.en_sqd_async_notify != 0;
  to.max_rd_atomic = from.max_rd_atomic;
  to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.port_num = from.port_num;
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_cnt;
  to.rnr_retry = from.rnr_retry;
  to.alt_port_num = from.alt_port_num;
  to.alt_timeout = from.alt_timeout;
  return to;
}

ibv_qp_attr to_abi(const verbs::QpAttributes& from) {
  ibv_qp_attr to{};
  to.qp_state = static_cast<ibv_qp_state>(from.state);
  to.cur_qp_state = static_cast<ibv_qp_state>(from.state);
  to.path_mtu = static_cast<ibv_mtu>(from.path_mtu);
  to.path_mig_state = static_cast<ibv_mig_state>(from.path_mig_state);
  to.qkey = from.qkey;
  to.rq_psn = from.rq_psn;
  to.sq_psn = from.sq_psn;
  to.dest_qp_num = from.dest_qp_num;
  to.qp_access_flags = from.access_flags;
  to.ah_attr = ibverbs::to_abi(from.av);
  to.alt_ah_attr = ibverbs::to_abi(from.alt_av);
  to.pkey_index = from.pkey_index;
  to.en_sqd_async_notify = from.en_sqd_async_notify ? 1 : 0;
  to.sq_draining = from.is_sq_draining ? 1 : 0;
  to.max_rd_atomic = from.max_rd_atomic;
  to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.port_num = from.port_num;
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_cnt;
  to.rnr_retry = from.rnr_retry;
  to.alt_port_num = from.alt_port_num;
  to.alt_timeout = from.alt_timeout;
  return to;
}

}  // namespace

ibv_qp* create_pair(ibv_context*, ibv_qp_init_attr_ex* attributes) try {
  const Call call;
  if (attributes == nullptr) return refuse(EINVAL, "ibv_create_qp_ex: the attributes are null");
  const bool is_target = attributes->qp_type == IBV_QPT_XRC_RECV;
  if (is_target && (attributes->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0)
    return refuse(EINVAL, "ibv_create_qp_ex: IBV_QPT_XRC_RECV needs an XRC domain: set xrcd, and XRCD in comp_mask");
  if (!is_target && (attributes->comp_mask & IBV_QP_INIT_ATTR_PD) == 0)
    return refuse(EINVAL, "ibv_create_qp_ex: a protection domain is missing: set pd, and PD in comp_mask");
  if (const auto absent = absent_feature(*attributes)) return refuse(tell_absent(*absent));
  if (is_target) return create_target(*attributes);
  const bool is_extended = (attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  // Up to sq_sig_all, the structure has the layout of the plain one.
  Pair* pair = make(attributes->pd, *reinterpret_cast<ibv_qp_init_attr*>(attributes));
  if (pair == nullptr) return nullptr;
  if (is_extended) {
    pair->is_extended = true;
    set_operations(*pair);
  }
  return &table<Pair>().publish(pair)->qp_base;
} catch (const std::exception&) {
  return thrown();
}

bool fail_pair(const Identity& device, std::uint32_t number, std::uint32_t peer) {
  for (const std::uint32_t handle : table<Pair>().all()) {
    const Call call;
    Pair* pair = table<Pair>().find(handle);
    if (pair == nullptr || pair->qp_base.qp_num != number || &pair->owner.identity != &device) continue;
    const verbs::QpAttributes now = pair->native->query();
    const bool is_connected = now.state != verbs::QpState::reset && now.state != verbs::QpState::init;
    if (!is_connected || now.dest_qp_num != peer) return false;
    verbs::QpAttributes failed;
    failed.state = verbs::QpState::err;
    if (!pair->native->modify(failed, IBV_QP_STATE)) return false;
    show_state(*pair, IBV_QPS_ERR);
    return true;
  }
  return false;
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;
namespace verbs = fairlead::verbs;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) try {
  const Call call;
  if (attributes == nullptr) return refuse(EINVAL, "ibv_create_qp: the attributes are null");
  Pair* pair = make(pd, *attributes);
  return pair != nullptr ? &table<Pair>().publish(pair)->qp_base : nullptr;
} catch (const std::exception&) {
  return thrown();
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* abi) {
  const Call call;
  Pair* pair = find(abi);
  return pair != nullptr && pair->is_extended ? pair : nullptr;
}

int ibv_modify_qp(ibv_qp* abi, ibv_qp_attr* attributes, int mask) try {
  const Call call;
  Pair* pair = find(abi);
  if (pair == nullptr || attributes == nullptr) return fail(EINVAL);
  const bool asks_for_migration = (mask & IBV_QP_PATH_MIG_STATE) != 0 && attributes->path_mig_state == IBV_MIG_REARM;
  if ((mask & IBV_QP_ALT_PATH) != 0 || asks_for_migration) note_absent(Absent::path_migration);
  const std::uint32_t meant = static_cast<std::uint32_t>(mask) & ~meaningless_for(pair->qp_base.qp_type);
  if (const auto done = pair->native->modify(to_native(*attributes), meant); !done) {
    return fail(done.error());
  }
  if ((mask & IBV_QP_STATE) != 0) show_state(*pair, attributes->qp_state);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int ibv_query_qp(ibv_qp* abi, ibv_qp_attr* out, int, ibv_qp_init_attr* init) try {
  const Call call;
  Pair* pair = find(abi);
  if (pair == nullptr || out == nullptr) return fail(EINVAL);
  if (pair->owner.mark.is_inherited()) return fail(EIO);
  *out = to_abi(pair->native->query());
  out->cap = to_abi(pair->native->capacity());
  show_state(*pair, out->qp_state);
  if (init != nullptr) {
    const ibv_qp& face = pair->qp_base;
    *init = {.qp_context = face.qp_context,
             .send_cq = face.send_cq,
             .recv_cq = face.recv_cq,
             .srq = face.srq,
             .cap = out->cap,
             .qp_type = face.qp_type,
             .sq_sig_all = pair->signals_all ? 1 : 0};
  }
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) try {
  return 0;  // fragments of a long message are written as they arrive
} catch (const std::exception&) {
  return thrown();
}

int ibv_destroy_qp(ibv_qp* abi) try {
  const Call call;
  Pair* pair = find(abi);
  if (pair == nullptr) return fail(EINVAL);
  if (pair->bracket.is_entered()) return fail(EBUSY);  // a thread is building requests for it
  if (const auto done = pair->native->destroy(); !done) return fail(done.error());
  return table<Pair>().destroy(pair) ? 0 : fail(EINVAL);
} catch (const std::exception&) {
  return thrown();
}
}
