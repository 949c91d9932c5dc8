// XRC domains, and the target queue pairs in front of their shared receive queues.
#include <fcntl.h>

#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/operations.hpp"
#include "doors/ibverbs/refusal.hpp"

namespace fairlead::ibverbs {

XrcDomain* find(const ibv_xrcd* abi) {
  auto* domain = static_cast<XrcDomain*>(const_cast<ibv_xrcd*>(abi));
  return abi != nullptr && registry<XrcDomain>().contains(domain) ? domain : nullptr;
}

ibv_xrcd* open_xrc_domain(ibv_context* abi, ibv_xrcd_init_attr* attributes) try {
  const Call call;
  constexpr std::uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  OpenContext* context = find_context(abi);
  if (context == nullptr || attributes == nullptr || (attributes->comp_mask & kNeeded) != kNeeded)
    return refuse(EINVAL);
  if ((attributes->comp_mask & ~kNeeded) != 0) return refuse(EOPNOTSUPP);
  auto native = verbs::XrcDomain::open(context->native, {.descriptor = attributes->fd,
                                                         .may_create = (attributes->oflags & O_CREAT) != 0,
                                                         .has_to_create = (attributes->oflags & O_EXCL) != 0});
  if (!native) {
    if ((attributes->oflags & O_CREAT) == 0 && attributes->fd >= 0) note_absent(Absent::foreign_xrc_domain);
    return refuse(native.error());
  }
  auto* domain = new XrcDomain(*context, std::move(*native));
  registry<XrcDomain>().insert(domain);
  return domain;
} catch (const std::exception&) {
  return thrown();
}

int close_xrc_domain(ibv_xrcd* abi) try {
  const Call call;
  XrcDomain* domain = find(abi);
  if (domain == nullptr) return fail(EINVAL);
  auto native = domain->native;
  if (const auto done = native.close(); !done) return fail(done.error());
  if (!registry<XrcDomain>().erase(domain)) return fail(EINVAL);
  {
    const verbs::XrcDomain ended = std::move(domain->native);
  }
  registry<XrcDomain>().rest(domain);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

namespace {

/// Creates a target. `make_native(domain, cookie)` returns the native queue pair.
template <typename MakeNative>
ibv_qp* make_target(ibv_xrcd* abi, void* cookie, MakeNative make_native) {
  XrcDomain* domain = find(abi);
  if (domain == nullptr) return refuse(EINVAL, "an XRC target needs an XRC domain: pass what ibv_open_xrcd gave");
  Pair* pair = table<Pair>().make(domain->owner);
  if (pair == nullptr) return refuse(ENOMEM);
  auto native = make_native(domain->native, std::uint64_t{pair->qp_base.handle});
  if (!native) {
    table<Pair>().discard(pair);
    note_refusal(native.error().message);
    return refuse(native.error());
  }
  pair->native.emplace(std::move(*native));
  ibv_qp& face = pair->qp_base;
  face.context = &domain->owner.context;
  face.qp_context = cookie;
  face.qp_num = pair->native->number();
  face.state = static_cast<ibv_qp_state>(pair->native->state());
  face.qp_type = IBV_QPT_XRC_RECV;
  return &table<Pair>().publish(pair)->qp_base;
}

}  // namespace

ibv_qp* create_target(ibv_qp_init_attr_ex& attributes) {
  ibv_qp* made = make_target(attributes.xrcd, attributes.qp_context, [](const auto& domain, std::uint64_t cookie) {
    return verbs::QueuePair::create_target(domain, cookie);
  });
  if (made == nullptr) return nullptr;
  attributes.cap = {};
  // A target does not use it, but librdmacm takes it from here for the shared receive queue.
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_PD) != 0) made->pd = attributes.pd;
  return made;
}

ibv_qp* open_target(ibv_context* abi, ibv_qp_open_attr* attributes) try {
  const Call call;
  constexpr std::uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if (find_context(abi) == nullptr || attributes == nullptr || (attributes->comp_mask & kNeeded) != kNeeded ||
      attributes->qp_type != IBV_QPT_XRC_RECV)
    return refuse(EINVAL);
  void* const cookie = (attributes->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attributes->qp_context : nullptr;
  return make_target(attributes->xrcd, cookie, [&](const auto& domain, std::uint64_t) {
    return verbs::QueuePair::open_target(domain, attributes->qp_num);
  });
} catch (const std::exception&) {
  return thrown();
}

}  // namespace fairlead::ibverbs
