// Thread domains, parent domains, and imports: further views of this process's own objects. A thread domain promises
// that one thread uses its objects, which has no effect here. A parent domain is its protection domain under another
// pointer. A parent domain's allocators are not called, because the engine owns the memory of queues.
#include <algorithm>
#include <span>

#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {

ibv_td* add_thread_domain(ibv_context* abi, ibv_td_init_attr* attributes) try {
  const Call call;
  if (find_context(abi) == nullptr || attributes == nullptr) return refuse(EINVAL);
  if (attributes->comp_mask != 0) return refuse(EOPNOTSUPP);
  auto* domain = new ibv_td{abi};
  registry<ibv_td>().insert(domain);
  return domain;
} catch (const std::exception&) {
  return thrown();
}

int remove_thread_domain(ibv_td* domain) try {
  if (!registry<ibv_td>().erase(domain)) return fail(EINVAL);
  registry<ibv_td>().rest(domain);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

ibv_pd* add_parent_domain(ibv_context* abi, ibv_parent_domain_init_attr* attributes) try {
  const Call call;
  constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if (find_context(abi) == nullptr || attributes == nullptr) return refuse(EINVAL);
  if ((attributes->comp_mask & ~kKnown) != 0) return refuse(EOPNOTSUPP);
  if (attributes->td != nullptr && !registry<ibv_td>().contains(attributes->td)) return refuse(EINVAL);
  Domain* base = find(attributes->pd);
  if (base == nullptr) return refuse(EINVAL);
  Domain* domain = table<Domain>().make(base->owner, base->native);
  if (domain == nullptr) return refuse(ENOMEM);
  domain->base = base->parents;
  ++*domain->base;
  return table<Domain>().publish(domain);
} catch (const std::exception&) {
  return thrown();
}

int advise_region(ibv_pd* pd, ibv_advise_mr_advice, std::uint32_t, ibv_sge* list, std::uint32_t count) try {
  const Call call;
  if (find(pd) == nullptr || (count != 0 && list == nullptr)) return fail(EINVAL);
  const std::vector<std::uint32_t> regions = table<Region>().all();
  for (const ibv_sge& piece : std::span(list, count)) {
    const bool is_known = std::ranges::any_of(regions, [&](std::uint32_t handle) {
      const Call look;
      const Region* region = table<Region>().find(handle);
      return region != nullptr && region->lkey == piece.lkey;
    });
    if (!is_known) return fail(ENOENT);
  }
  return 0;  // only advice: the kernel faults pages in on access
} catch (const std::exception&) {
  return thrown();
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;

extern "C" {

ibv_pd* ibv_import_pd(ibv_context* abi, std::uint32_t handle) try {
  const Call call;
  OpenContext* context = find_context(abi);
  const Domain* original = table<Domain>().find(handle);
  if (context == nullptr || original == nullptr) return refuse(EINVAL);
  Domain* domain = table<Domain>().make(*context, original->native);
  if (domain == nullptr) return refuse(ENOMEM);
  domain->is_imported = true;
  return table<Domain>().publish(domain);
} catch (const std::exception&) {
  return thrown();
}

void ibv_unimport_pd(ibv_pd* pd) try {
  const Call call;
  Domain* domain = find(pd);
  if (domain != nullptr && domain->is_imported) table<Domain>().destroy(domain);
} catch (const std::exception&) {
  (void)thrown();
}

ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) try {
  const Call call;
  Domain* domain = find(pd);
  const Region* original = table<Region>().find(handle);
  if (domain == nullptr || original == nullptr) return refuse(EINVAL);
  Region* region = table<Region>().make(domain->owner);
  if (region == nullptr) return refuse(ENOMEM);
  region->context = pd->context;
  region->pd = pd;
  region->length = original->length;  // an import has no address, as with hardware devices
  region->lkey = original->lkey;
  region->rkey = original->rkey;
  return table<Region>().publish(region);
} catch (const std::exception&) {
  return thrown();
}

void ibv_unimport_mr(ibv_mr* mr) try {
  const Call call;
  Region* region = find(mr);
  if (region != nullptr && !region->native) table<Region>().destroy(region);
} catch (const std::exception&) {
  (void)thrown();
}
}
