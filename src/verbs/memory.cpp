#include <fairlead/verbs/memory.hpp>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/page_memory.hpp"
#include "base/process_memory.hpp"
#include "verbs/domain_state.hpp"

namespace fairlead::verbs {

Result<ProtectionDomain> ProtectionDomain::allocate(const Context& context) {
  const auto& owner = context.state();
  if (!owner) return failure(EINVAL, "this context is closed");
  if (auto alive = check_alive(*owner); !alive) return std::unexpected(std::move(alive.error()));
  if (!owner->domains.take()) return failure(ENOMEM, "all protection domains of the context are in use");
  return ProtectionDomain(std::make_shared<DomainState>(owner));
}

Result<> ProtectionDomain::deallocate() {
  if (!state_) return failure(EINVAL, "this protection domain is deallocated already");
  if (const auto left = state_->members.count(); left != 0 && !state_->context->is_dead()) {
    return failure(EBUSY, std::to_string(left) + " objects are left in the protection domain");
  }
  state_.reset();
  return {};
}

struct RegionState {
  explicit RegionState(std::shared_ptr<DomainState> its_domain)
      : context(its_domain->context), domain(std::move(its_domain)) {
    domain->members.add();
  }
  ~RegionState() { drop(); }
  RegionState(const RegionState&) = delete;
  RegionState& operator=(const RegionState&) = delete;

  void drop() {
    if (domain && key != 0 && !context->is_dead()) context->pair_core->unbind_windows(key);
    remove();
  }
  /// Returns 0, EINVAL if the region is removed already, or EBUSY while windows are bound to it.
  int remove() {
    const std::scoped_lock lock(mutex);
    if (!domain) return EINVAL;
    if (!context->is_dead()) {
      if (key != 0 && context->pair_core->remove_region(key) == Status::in_use) return EBUSY;
      if (!shown.empty()) context->pair_core->free(shown);
    }
    context->probed.leave(probed);
    domain->members.drop();
    domain.reset();
    return 0;
  }

  std::mutex mutex;
  const std::shared_ptr<ContextState> context;
  std::shared_ptr<DomainState> domain;  // null after removal
  qp::RegionPlan plan;
  std::uint32_t key = 0;
  ProbedMemory::Use probed;
  std::span<std::byte> shown;  // memory of allocate(): from the engine ...
  base::PageMemory own;        // ... or private memory if the engine has none
};

namespace {

/// Checks a registration. `use`: its memory, to be left when the region ends.
Result<> check(ContextState& context, const qp::RegionPlan& plan, std::uint32_t access, ProbedMemory::Use& use) {
  constexpr std::uint32_t kNeedsWrite = access::remote_write | access::remote_atomic;
  constexpr std::uint32_t kKnown = access::local_write | access::remote_write | access::remote_read |
                                   access::remote_atomic | access::mw_bind | access::zero_based | access::on_demand |
                                   access::huge_pages | access::optional_range;
  if ((access & ~kKnown) != 0) return failure(EOPNOTSUPP, "memory region: an access flag that is not supported");
  if ((access & kNeedsWrite) != 0 && (access & access::local_write) == 0) {
    return failure(EINVAL, "memory region: remote_write and remote_atomic need local_write");
  }
  if (plan.is_everything) return {};  // each access checks what is mapped
  if (plan.length > context.limits.max_mr_size || plan.iova + plan.length < plan.iova) {
    return failure(EINVAL, "memory region: longer than any can be");
  }
  const bool is_written = (access & access::local_write) != 0;
  const int error = plan.is_on_demand ? (base::is_mapped({plan.base, plan.length}, is_written) ? 0 : EFAULT)
                                      : context.probed.enter(plan.base, plan.length, is_written, use);
  if (error != 0) return failure(error, "memory region: not all of it is mapped with the rights asked for");
  return {};
}

/// Returns whether the registration covers the whole address space: no address, the greatest length, on demand.
bool is_everything(const Registration& registration) {
  return registration.address == nullptr && registration.length == UINT64_MAX &&
         (registration.access & access::on_demand) != 0;
}

qp::RegionPlan plan_of(const DomainState& domain, const Registration& registration) {
  const bool is_zero_based = (registration.access & access::zero_based) != 0;
  if (is_everything(registration))
    return {.access = registration.access, .domain = domain.number, .is_everything = true};
  return {
      .base = static_cast<std::byte*>(registration.address),
      .length = registration.length,
      .iova = registration.iova.value_or(is_zero_based ? 0 : reinterpret_cast<std::uintptr_t>(registration.address)),
      .access = registration.access & ~access::on_demand,
      .domain = domain.number,
      .is_on_demand = (registration.access & access::on_demand) != 0};
}

}  // namespace

Result<MemoryRegion> MemoryRegion::add(const ProtectionDomain& domain, const Registration& registration) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this protection domain is deallocated");
  if (auto alive = check_alive(*owner->context); !alive) return std::unexpected(std::move(alive.error()));
  return add_to(std::make_shared<RegionState>(owner), registration);
}

Result<MemoryRegion> MemoryRegion::allocate(const ProtectionDomain& domain, std::uint64_t length,
                                            std::uint32_t access) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this protection domain is deallocated");
  if (auto alive = check_alive(*owner->context); !alive) return std::unexpected(std::move(alive.error()));
  if (length == 0) return failure(EINVAL, "memory region: no length");
  auto state = std::make_shared<RegionState>(owner);
  state->shown = owner->context->pair_core->allocate(length);
  if (state->shown.empty()) {
    auto own = base::PageMemory::allocate(length);
    if (!own) return std::unexpected(std::move(own.error()));
    state->own = std::move(*own);
  }
  void* const memory = state->shown.empty() ? state->own.bytes().data() : state->shown.data();
  return add_to(std::move(state), {.address = memory, .length = length, .access = access, .iova = {}});
}

Result<MemoryRegion> MemoryRegion::add_to(std::shared_ptr<RegionState> state, const Registration& registration) {
  const DomainState& domain = *state->domain;
  const bool is_moved = registration.iova.value_or(0) != 0 || (registration.access & access::zero_based) != 0;
  if (is_everything(registration) && is_moved)
    return failure(EINVAL,
                   "memory region: addresses in the whole address space are the process's: no iova, not zero_based");
  state->plan = plan_of(domain, registration);
  if (auto usable = check(*domain.context, state->plan, registration.access, state->probed); !usable) {
    return std::unexpected(std::move(usable.error()));
  }
  return add_to(std::move(state));
}

Result<MemoryRegion> MemoryRegion::add_to(std::shared_ptr<RegionState> state) {
  auto key = state->context->pair_core->add_region(state->plan);
  if (!key) return failure(std::move(key.error()));
  state->key = *key;
  return MemoryRegion(std::move(state));
}

Result<MemoryRegion> MemoryRegion::null(const ProtectionDomain& domain) {
  const auto& owner = domain.state();
  if (!owner) return failure(EINVAL, "this protection domain is deallocated");
  if (auto alive = check_alive(*owner->context); !alive) return std::unexpected(std::move(alive.error()));
  auto state = std::make_shared<RegionState>(owner);
  state->plan = {.access = access::local_write, .domain = owner->number, .is_null = true};
  return add_to(std::move(state));
}

MemoryRegion& MemoryRegion::operator=(MemoryRegion&&) noexcept = default;
MemoryRegion::~MemoryRegion() = default;

Result<> MemoryRegion::remove() {
  const int error = state_ ? state_->remove() : EINVAL;
  if (error == EBUSY) return failure(EBUSY, "memory region: windows are bound to it: invalidate or deallocate them");
  if (error != 0) return failure(error, "this memory region is deregistered already");
  return {};
}

Result<> MemoryRegion::change(const Change& change) {
  if (!state_) return failure(EINVAL, "this memory region is deregistered");
  if (auto alive = check_alive(*state_->context); !alive) return alive;
  const std::scoped_lock lock(state_->mutex);
  if (!state_->domain) return failure(EINVAL, "this memory region is deregistered");
  if (state_->plan.is_null) return failure(EINVAL, "memory region: a null region cannot be changed");
  const auto domain = change.domain != nullptr ? change.domain->state() : state_->domain;
  if (!domain || domain->context != state_->context) {
    return failure(EINVAL, "memory region: the new protection domain belongs to another context");
  }
  qp::RegionPlan plan = state_->plan;
  plan.access = change.access.value_or(plan.access) & ~access::on_demand;
  if (change.place) {
    Registration place = *change.place;
    place.access = plan.access;
    plan = plan_of(*domain, place);
  }
  plan.domain = domain->number;
  ProbedMemory::Use probed;
  if (auto usable = check(*domain->context, plan, plan.access, probed); !usable) return usable;
  if (auto changed = domain->context->pair_core->change_region(state_->key, plan); !changed) {
    domain->context->probed.leave(probed);
    return failure(std::move(changed.error()));
  }
  domain->context->probed.leave(std::exchange(state_->probed, probed));
  state_->plan = plan;
  domain->members.add();
  state_->domain->members.drop();
  state_->domain = domain;
  return {};
}

std::uint32_t MemoryRegion::lkey() const noexcept {
  return state_->key;
}
std::uint32_t MemoryRegion::rkey() const noexcept {
  return state_->plan.is_null ? 0 : state_->key;
}
void* MemoryRegion::address() const noexcept {
  return state_->plan.base;
}
std::uint64_t MemoryRegion::length() const noexcept {
  return state_->plan.is_everything || state_->plan.is_null ? UINT64_MAX : state_->plan.length;
}
Sge MemoryRegion::sge(std::uint64_t offset, std::uint32_t length) const noexcept {
  return {.addr = state_->plan.iova + offset, .length = length, .lkey = state_->key};
}
RemoteMemory MemoryRegion::remote(std::uint64_t offset) const noexcept {
  const std::uint64_t left = offset < length() ? length() - offset : 0;
  return {.address = state_->plan.iova + offset, .length = left, .rkey = rkey()};
}

}  // namespace fairlead::verbs
