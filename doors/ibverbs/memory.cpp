// Protection domains and memory regions.
#include <unistd.h>

#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                  IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND;

constexpr unsigned kFlushAccess = 3U << 8;  // IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT of later versions

/// Returns 0, or why a region cannot have these rights.
int check_access(unsigned access) {
  const unsigned unknown = access & ~(kKnownAccess | IBV_ACCESS_OPTIONAL_RANGE);
  if ((unknown & kFlushAccess) != 0) return tell_absent(Absent::flush);
  return unknown == 0 ? 0 : EINVAL;
}

void describe(Region& region) {
  region.addr = region.native->address();
  region.length = region.native->length();
  region.lkey = region.native->lkey();
  region.rkey = region.native->rkey();
}

ibv_mr* publish(Domain& domain, ibv_pd* pd, Result<verbs::MemoryRegion> native,
                const std::shared_ptr<std::byte>& device_bytes) {
  if (!native) return refuse(native.error());
  Region* region = table<Region>().make(domain.owner);
  if (region == nullptr) return refuse(ENOMEM);
  region->native.emplace(std::move(*native));
  region->device_bytes = device_bytes;
  region->context = pd->context;
  region->pd = pd;
  describe(*region);
  return table<Region>().publish(region);
}

}  // namespace

ibv_mr* add_region(ibv_pd* pd, void* address, std::size_t length, std::optional<std::uint64_t> iova, unsigned access,
                   const std::shared_ptr<std::byte>& device_bytes) {
  const Call call;
  Domain* domain = find(pd);
  if (domain == nullptr) return refuse(EINVAL);
  if (const int error = check_access(access); error != 0) return refuse(error);
  return publish(
      *domain, pd,
      verbs::MemoryRegion::add(domain->native, {.address = address, .length = length, .access = access, .iova = iova}),
      device_bytes);
}

ibv_mr* add_null_region(ibv_pd* pd) try {
  const Call call;
  Domain* domain = find(pd);
  if (domain == nullptr) return refuse(EINVAL);
  return publish(*domain, pd, verbs::MemoryRegion::null(domain->native), {});
} catch (const std::exception&) {
  return thrown();
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;
namespace verbs = fairlead::verbs;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* abi) try {
  const Call call;
  OpenContext* context = find_context(abi);
  if (context == nullptr) return refuse(EINVAL);
  auto native = verbs::ProtectionDomain::allocate(context->native);
  if (!native) return refuse(native.error());
  Domain* domain = table<Domain>().create(*context, std::move(*native));
  return domain != nullptr ? domain : static_cast<ibv_pd*>(refuse(ENOMEM));
} catch (const std::exception&) {
  return thrown();
}

int ibv_dealloc_pd(ibv_pd* pd) try {
  const Call call;
  Domain* domain = find(pd);
  if (domain == nullptr || domain->is_imported) return fail(EINVAL);
  if (*domain->parents != 0) return fail(EBUSY);
  if (const auto base = domain->base; base != nullptr) {
    if (!table<Domain>().destroy(domain)) return fail(EINVAL);
    --*base;
    return 0;
  }
  auto native = domain->native;
  if (const auto done = native.deallocate(); !done) return fail(done.error());
  return table<Domain>().destroy(domain) ? 0 : fail(EINVAL);
} catch (const std::exception&) {
  return thrown();
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) try {
  return add_region(pd, address, length, {}, static_cast<unsigned>(access));
} catch (const std::exception&) {
  return thrown();
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) try {
  return add_region(pd, address, length, iova, static_cast<unsigned>(access));
} catch (const std::exception&) {
  return thrown();
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) try {
  // Programs also reach ibv_reg_mr() this way, with the address itself as iova. The zero-based flag then takes
  // precedence.
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) return add_region(pd, address, length, {}, access);
  return add_region(pd, address, length, iova, access);
} catch (const std::exception&) {
  return thrown();
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  return refuse(tell_absent(Absent::other_memory));
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) try {
  constexpr int kAll = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  const Call call;
  Region* region = find(mr);
  if (region != nullptr && !region->native) region = nullptr;  // an import cannot be re-registered
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  Domain* domain = changes_domain ? find(pd) : nullptr;
  if (region == nullptr || flags == 0 || (flags & ~kAll) != 0 || (moves && (length == 0 || address == nullptr)) ||
      (changes_domain && domain == nullptr) || check_access(static_cast<unsigned>(access)) != 0) {
    fail(EINVAL);
    return IBV_REREG_MR_ERR_INPUT;
  }
  verbs::MemoryRegion::Change change;
  if (moves) change.place = {.address = address, .length = length, .access = 0, .iova = {}};
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) change.access = static_cast<unsigned>(access);
  if (changes_domain) change.domain = &domain->native;
  const std::lock_guard guard(region->changing);
  if (const auto done = region->native->change(change); !done) {
    fail(done.error());
    return IBV_REREG_MR_ERR_CMD;
  }
  describe(*region);
  if (changes_domain) region->pd = pd;
  return 0;
} catch (const std::exception&) {
  (void)thrown();
  return IBV_REREG_MR_ERR_CMD;
}

int ibv_dereg_mr(ibv_mr* mr) try {
  const Call call;
  Region* region = find(mr);
  if (region == nullptr || !region->native) return fail(EINVAL);
  if (const auto done = region->native->remove(); !done) return fail(done.error());
  return table<Region>().destroy(region) ? 0 : fail(EINVAL);
} catch (const std::exception&) {
  return thrown();
}
}
