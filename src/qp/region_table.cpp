#include "qp/region_table.hpp"

#include <algorithm>

namespace fairlead::qp {

std::uint32_t RegionTable::add(const RegionPlan& plan) {
  if (used_ >= regions_max_) return 0;
  if (entries_.size() - used_ < kRotation) {
    const auto first = static_cast<std::uint32_t>(entries_.size());
    entries_.resize(first + kRotation);
    for (std::uint32_t slot = first; slot < first + kRotation; ++slot) give_back(slot);
  }
  const std::uint32_t slot = first_free_;
  Entry& entry = entries_[slot];
  first_free_ = entry.next_free;
  if (first_free_ == kNone) last_free_ = kNone;
  ++used_;
  entry.plan = plan;
  entry.is_used = true;
  // Variant 0 is never used, so key 0 names nothing.
  entry.variant = entry.variant == 255 ? 1 : static_cast<std::uint8_t>(entry.variant + 1);
  return slot << 8 | entry.variant;
}

bool RegionTable::remove(std::uint32_t key) {
  if (find(key) == nullptr) return false;
  const std::uint32_t slot = key >> 8;
  entries_[slot].is_used = false;
  if (entries_[slot].holds == 0) {
    --used_;
    give_back(slot);
  }
  return true;
}

bool RegionTable::change(std::uint32_t key, const RegionPlan& plan) {
  if (find(key) == nullptr) return false;
  entries_[key >> 8].plan = plan;
  return true;
}

void RegionTable::let_go(std::uint32_t slot) {
  Entry& entry = entries_[slot];
  ENSURE(entry.holds > 0, "region slot {} let go once too often", slot);
  if (--entry.holds == 0 && !entry.is_used) {
    --used_;
    give_back(slot);
  }
}

void RegionTable::give_back(std::uint32_t slot) {
  entries_[slot].next_free = kNone;
  (last_free_ == kNone ? first_free_ : entries_[last_free_].next_free) = slot;
  last_free_ = slot;
}

}  // namespace fairlead::qp
