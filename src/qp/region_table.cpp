#include "qp/region_table.hpp"

#include <algorithm>
#include <utility>

#include "base/mapped_memory.hpp"

namespace fairlead::qp {

std::uint32_t RegionTable::take_slot() {
  if (entries_.size() - used_ - windows_ < kRotation) {
    const auto first = static_cast<std::uint32_t>(entries_.size());
    entries_.resize(first + kRotation);
    for (std::uint32_t slot = first; slot < first + kRotation; ++slot) give_back(slot);
  }
  const std::uint32_t slot = first_free_;
  Entry& entry = entries_[slot];
  first_free_ = entry.next_free;
  if (first_free_ == kNone) last_free_ = kNone;
  // Only programs use variant 0, for their windows, so the table never assigns key 0.
  entry.variant = entry.variant == 255 ? 1 : static_cast<std::uint8_t>(entry.variant + 1);
  return slot;
}

std::uint32_t RegionTable::add(const RegionPlan& plan) {
  if (used_ >= regions_max_) return 0;
  const std::uint32_t slot = take_slot();
  ++used_;
  Entry& entry = entries_[slot];
  entry.plan = plan;
  entry.hold = slot;
  entry.is_used = true;
  return slot << 8 | entry.variant;
}

/// Finds a range in a region that has no bounds. Memory that a peer reads has to be mapped now. In all other cases the
/// later write or copy finds out.
[[gnu::noinline]] Permit RegionTable::locate_without_bounds(const Entry& entry, std::uint64_t address,
                                                            std::uint64_t length, std::uint32_t access) {
  namespace rights = verbs::access;
  if (entry.plan.is_null) return Permit::null(length, entry.hold);
  if (!entry.plan.is_everything) return Permit(verbs::Cause::out_of_range);
  auto* const at = reinterpret_cast<std::byte*>(address);
  const bool is_asked = (access & rights::remote_read) != 0;
  if (at == nullptr || length > UINT64_MAX - address || (is_asked && base::probe_memory(at, length, false) != 0))
    return Permit(verbs::Cause::out_of_range);
  return Permit::checked(at, length, entry.hold);
}

// Windows ------------------------------------------------------------------------------------------------------------

std::uint32_t RegionTable::add_window(verbs::WindowType type, std::uint32_t domain) {
  if (windows_ >= kWindowsMost) return 0;
  const std::uint32_t slot = take_slot();
  ++windows_;
  Entry& entry = entries_[slot];
  entry.plan = {.domain = domain};
  entry.type = type;
  return slot << 8 | entry.variant;
}

verbs::Cause RegionTable::judge(const verbs::WindowBinding& binding, std::uint32_t domain) const {
  using verbs::Cause;
  namespace rights = verbs::access;
  constexpr std::uint32_t kRemote = rights::remote_write | rights::remote_read | rights::remote_atomic;
  constexpr std::uint32_t kNeedsWrite = rights::remote_write | rights::remote_atomic;
  const Entry* region = find(binding.lkey);
  if (region == nullptr || region->is_window() || region->plan.domain != domain) return Cause::key_unknown;
  if ((region->plan.access & rights::mw_bind) == 0 ||
      (binding.access & ~(kRemote | rights::local_write | rights::zero_based)) != 0 ||
      ((binding.access & kNeedsWrite) != 0 && (region->plan.access & rights::local_write) == 0))
    return Cause::no_right;
  const std::uint64_t offset = binding.addr - region->plan.iova;
  const bool is_inside = binding.addr >= region->plan.iova && offset <= region->plan.length &&
                         binding.length <= region->plan.length - offset;
  return is_inside ? Cause::none : Cause::out_of_range;
}

verbs::Cause RegionTable::bind(const verbs::WindowBinding& binding, std::uint32_t domain, std::uint32_t pair) {
  Entry* const window = find_window(binding.window);
  if (window == nullptr || window->plan.domain != domain || binding.key >> 8 != binding.window >> 8)
    return verbs::Cause::key_unknown;
  if (window->type == verbs::WindowType::type_2 && (binding.length == 0 || window->is_used))
    return verbs::Cause::bad_request;
  const verbs::Cause wrong = binding.length != 0 ? judge(binding, domain) : verbs::Cause::none;
  if (wrong != verbs::Cause::none) return wrong;
  unbind(*window);
  window->variant = static_cast<std::uint8_t>(binding.key);
  if (binding.length == 0) return verbs::Cause::none;
  const std::uint32_t slot = binding.lkey >> 8;
  Entry& region = entries_[slot];
  ++region.windows;
  window->region = slot;
  window->hold = region.hold;
  window->pair = window->type == verbs::WindowType::type_2 ? pair : 0;
  window->is_used = true;
  window->plan = {.base = region.plan.base + (binding.addr - region.plan.iova),
                  .length = binding.length,
                  .iova = (binding.access & verbs::access::zero_based) != 0 ? 0 : binding.addr,
                  .access = binding.access,
                  .domain = domain};
  return verbs::Cause::none;
}

void RegionTable::unbind(Entry& window) {
  if (!std::exchange(window.is_used, false)) return;
  --entries_[window.region].windows;
  window.region = kNone;
  window.pair = 0;
}

bool RegionTable::is_invalidable(std::uint32_t key, std::uint32_t domain, std::uint32_t pair) const {
  const Entry* const entry = find(key);
  return entry != nullptr && entry->type == verbs::WindowType::type_2 && entry->plan.domain == domain &&
         entry->pair == pair;
}

void RegionTable::remove_window(std::uint32_t key) {
  Entry* const window = find_window(key);
  if (window == nullptr) return;
  unbind(*window);
  window->type = {};
  window->plan = {};
  --windows_;
  give_back(key >> 8);
}

void RegionTable::unbind_windows_of_region(std::uint32_t key) {
  if (!has_windows(key)) return;
  for (Entry& each : entries_)
    if (each.is_window() && each.region == key >> 8) unbind(each);
}

void RegionTable::unbind_windows_of_pair(std::uint32_t number) {
  if (windows_ == 0) return;
  for (Entry& each : entries_)
    if (each.is_window() && each.is_used && each.pair == number) unbind(each);
}

// Regions ------------------------------------------------------------------------------------------------------------

bool RegionTable::remove(std::uint32_t key) {
  if (find(key) == nullptr) return false;
  entries_[key >> 8].is_used = false;
  free(key >> 8);
  return true;
}

void RegionTable::end_withdrawal(std::uint32_t key) {
  Entry& entry = entries_[key >> 8];
  ENSURE(entry.withdrawals > 0, "region slot {}: a withdrawal ends twice", key >> 8);
  --entry.withdrawals;
  free(key >> 8);
}

Status RegionTable::change(std::uint32_t key, const RegionPlan& plan) {
  if (find(key) == nullptr) return Status::stale;
  Entry& entry = entries_[key >> 8];
  const bool is_held_now = entry.holds[entry.epoch()] != 0;
  if (is_held_now && is_held_from_before(key)) return Status::again;
  if (is_held_now) entry.hold ^= kEpoch;
  entry.plan = plan;
  return Status::ok;
}

void RegionTable::let_go(std::uint32_t hold) {
  const std::uint32_t slot = slot_of(hold);
  std::uint32_t& holds = entries_[slot].holds[(hold & kEpoch) != 0];
  ENSURE(holds > 0, "region slot {} let go once too often", slot);
  if (--holds == 0) free(slot);
}

void RegionTable::check(const std::vector<std::uint32_t>& holds) const {
  std::vector<std::uint32_t> bound(entries_.size());
  std::uint32_t used = 0, windows = 0, unused = 0;
  for (std::uint32_t slot = 0; slot < entries_.size(); ++slot) {
    const Entry& entry = entries_[slot];
    const std::uint32_t counted = slot < holds.size() ? holds[slot] : 0;
    const std::uint32_t holding = entry.holds[0] + entry.holds[1];
    ENSURE(holding == counted, "region slot {}: held {} times, by {} messages", slot, holding, counted);
    ++(entry.is_window() ? windows : entry.is_in_use() ? used : unused);
    if (!entry.is_window() || !entry.is_used) continue;
    ENSURE(entry.region < entries_.size() && entries_[entry.region].is_used, "window {}: bound to no region", slot);
    ++bound[entry.region];
  }
  for (std::uint32_t slot = 0; slot < entries_.size(); ++slot)
    ENSURE(bound[slot] == entries_[slot].windows, "region slot {}: {} windows, {} are bound to it", slot,
           entries_[slot].windows, bound[slot]);
  for (std::uint32_t slot = first_free_; slot != kNone && unused != 0; slot = entries_[slot].next_free) --unused;
  ENSURE(used == used_ && windows == windows_ && unused == 0,
         "{} regions and {} windows, {} and {} are known, {} slots are lost", used, windows, used_, windows_, unused);
}

void RegionTable::free(std::uint32_t slot) {
  if (entries_[slot].is_in_use()) return;
  --used_;
  give_back(slot);
}

void RegionTable::give_back(std::uint32_t slot) {
  entries_[slot].next_free = kNone;
  (last_free_ == kNone ? first_free_ : entries_[last_free_].next_free) = slot;
  last_free_ = slot;
}

}  // namespace fairlead::qp
