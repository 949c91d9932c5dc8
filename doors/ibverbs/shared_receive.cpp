// Shared receive queues.
#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

/// The additional objects of a shared receive queue for XRC.
struct Xrc {
  XrcDomain* domain = nullptr;
  Queue* queue = nullptr;
};

ibv_srq* make(ibv_pd* pd, void* cookie, ibv_srq_attr& attributes, const Xrc& xrc = {}) {
  const Call call;
  Domain* domain = find(pd);
  if (domain == nullptr) return refuse(EINVAL);
  SharedReceive* queue = table<SharedReceive>().make(domain->owner);
  if (queue == nullptr) return refuse(ENOMEM);
  auto native = verbs::SharedReceiveQueue::create(domain->native,
                                                  {.max_wr = attributes.max_wr,
                                                   .max_sge = attributes.max_sge,
                                                   .limit = attributes.srq_limit,
                                                   .cookie = queue->handle,
                                                   .xrc_domain = xrc.domain != nullptr ? &xrc.domain->native : nullptr,
                                                   .queue = xrc.queue != nullptr ? &*xrc.queue->native : nullptr});
  if (!native) {
    table<SharedReceive>().discard(queue);
    return refuse(native.error());
  }
  queue->native.emplace(std::move(*native));
  queue->context = pd->context;
  queue->srq_context = cookie;
  queue->pd = pd;
  const verbs::SharedReceiveOptions granted = queue->native->query();
  attributes.max_wr = granted.max_wr;
  attributes.max_sge = granted.max_sge;
  return table<SharedReceive>().publish(queue);
}

}  // namespace

ibv_srq* create_shared_receive(ibv_context*, ibv_srq_init_attr_ex* attributes) try {
  if (attributes == nullptr || (attributes->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0) return refuse(EINVAL);
  const bool has_type = (attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
  if (has_type && attributes->srq_type == IBV_SRQT_XRC) {
    constexpr std::uint32_t kNeeded = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    if ((attributes->comp_mask & kNeeded) != kNeeded) return refuse(EINVAL);
    const Call call;
    const Xrc xrc{find(attributes->xrcd), find(attributes->cq)};
    if (xrc.domain == nullptr || xrc.queue == nullptr) return refuse(EINVAL);
    return make(attributes->pd, attributes->srq_context, attributes->attr, xrc);
  }
  if (has_type && attributes->srq_type == IBV_SRQT_TM) return refuse(tell_absent(Absent::tag_matching));
  if (has_type && attributes->srq_type != IBV_SRQT_BASIC) return refuse(EOPNOTSUPP);
  return make(attributes->pd, attributes->srq_context, attributes->attr);
} catch (const std::exception&) {
  return thrown();
}

int shared_receive_number(ibv_srq* abi, std::uint32_t* number) try {
  const Call call;
  SharedReceive* queue = find(abi);
  if (queue == nullptr || number == nullptr) return fail(EINVAL);
  *number = queue->native->number();
  return 0;
} catch (const std::exception&) {
  return thrown();
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) try {
  if (attributes == nullptr) return refuse(EINVAL);
  return make(pd, attributes->srq_context, attributes->attr);
} catch (const std::exception&) {
  return thrown();
}

int ibv_modify_srq(ibv_srq* abi, ibv_srq_attr* attributes, int mask) try {
  const Call call;
  SharedReceive* queue = find(abi);
  if (queue == nullptr || attributes == nullptr || (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return fail(EINVAL);
  std::optional<std::uint32_t> max_wr, limit;
  if ((mask & IBV_SRQ_MAX_WR) != 0) max_wr = attributes->max_wr;
  if ((mask & IBV_SRQ_LIMIT) != 0) limit = attributes->srq_limit;
  if (const auto done = queue->native->modify(max_wr, limit); !done) return fail(done.error());
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int ibv_query_srq(ibv_srq* abi, ibv_srq_attr* out) try {
  const Call call;
  SharedReceive* queue = find(abi);
  if (queue == nullptr || out == nullptr) return fail(EINVAL);
  if (queue->owner.mark.is_inherited()) return fail(EIO);
  const fairlead::verbs::SharedReceiveOptions now = queue->native->query();
  *out = {.max_wr = now.max_wr, .max_sge = now.max_sge, .srq_limit = now.limit};
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int ibv_destroy_srq(ibv_srq* abi) try {
  const Call call;
  SharedReceive* queue = find(abi);
  if (queue == nullptr) return fail(EINVAL);
  auto native = *queue->native;
  if (const auto done = native.destroy(); !done) return fail(done.error());
  return table<SharedReceive>().destroy(queue) ? 0 : fail(EINVAL);
} catch (const std::exception&) {
  return thrown();
}
}
