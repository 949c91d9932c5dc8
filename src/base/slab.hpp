#pragma once
// Objects named by slot and generation. A stale name does no harm, because the generation has changed (no ABA problem).
// The slab grows in blocks up to its limit, and objects never move. Free slots are reused last in, first out
// (cache-warm).

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/ensure.hpp"

namespace fairlead::base {

template <typename T>
class Slab {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  // The table of blocks never moves, so an owner may use its object while others are acquired.
  explicit Slab(std::uint32_t size_max) : size_max_(size_max) { blocks_.reserve(size_max / kBlock + 1); }

  /// Returns whether acquire() will succeed, for callers that check before they change anything.
  bool has_room() { return free_ != kNone || grow(); }
  /// Returns a new object, or kNone at the limit or without memory.
  std::uint32_t acquire() {
    if (!has_room()) return kNone;
    const std::uint32_t slot = free_;
    Entry& entry = entry_at(slot);
    free_ = entry.next_free;
    entry.is_used = true;
    ++used_;
    std::destroy_at(&entry.object);
    std::construct_at(&entry.object);
    return slot;
  }

  void release(std::uint32_t slot) {
    Entry& entry = entry_at(slot);
    ENSURE(entry.is_used, "slot {} released twice", slot);
    entry.is_used = false;
    // Generation 0 is never in use, so a zeroed name matches nothing.
    if (++entry.generation == 0) entry.generation = 1;
    entry.next_free = free_;
    free_ = slot;
    --used_;
  }

  T& operator[](std::uint32_t slot) { return entry_at(slot).object; }
  const T& operator[](std::uint32_t slot) const { return entry_at(slot).object; }
  std::uint32_t generation(std::uint32_t slot) const { return entry_at(slot).generation; }

  /// Returns the object of that name, or null if it is gone. Any numbers are allowed.
  T* find(std::uint32_t slot, std::uint32_t generation) {
    if (slot >= size_) return nullptr;
    Entry& entry = entry_at(slot);
    return entry.is_used && entry.generation == generation ? &entry.object : nullptr;
  }

  std::uint32_t used() const { return used_; }
  /// Slots that exist, used or not; all of them may be indexed.
  std::uint32_t size() const { return size_; }

  /// Returns the generation of each slot that was ever used, with kUsed if it is in use. restore() makes slots of the
  /// same names from it.
  static constexpr std::uint64_t kUsed = std::uint64_t{1} << 32;
  std::vector<std::uint64_t> names() const {
    std::vector<std::uint64_t> names(size_);
    for (std::uint32_t slot = 0; slot < size_; ++slot)
      names[slot] = entry_at(slot).generation | (entry_at(slot).is_used ? kUsed : 0);
    while (!names.empty() && names.back() == 1) names.pop_back();
    return names;
  }
  /// Restores names into an empty slab that was never used. Returns false if there are too many, there is no memory, or
  /// the names are impossible.
  bool restore(std::span<const std::uint64_t> names) {
    if (size_ != 0 || names.size() > size_max_) return false;
    while (size_ < names.size())
      if (!grow()) return false;
    free_ = kNone;
    for (std::uint32_t slot = size_; slot-- > 0;) {
      const std::uint64_t name = slot < names.size() ? names[slot] : 1;
      Entry& entry = entry_at(slot);
      entry.generation = static_cast<std::uint32_t>(name);
      entry.is_used = (name & kUsed) != 0;
      if (entry.generation == 0 || name >= 2 * kUsed) return false;
      used_ += entry.is_used;
      if (!entry.is_used) entry.next_free = std::exchange(free_, slot);
    }
    return true;
  }

  /// Calls visit(slot, object) for each object in use.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::uint32_t slot = 0; slot < size_; ++slot) {
      if (Entry& entry = entry_at(slot); entry.is_used) visit(slot, entry.object);
    }
  }

 private:
  static constexpr std::uint32_t kBlock = 256;

  struct Entry {
    T object{};
    std::uint32_t generation = 1;
    std::uint32_t next_free = kNone;
    bool is_used = false;
  };

  Entry& entry_at(std::uint32_t slot) { return blocks_[slot / kBlock][slot % kBlock]; }
  const Entry& entry_at(std::uint32_t slot) const { return blocks_[slot / kBlock][slot % kBlock]; }

  bool grow() {
    if (size_ >= size_max_) return false;
    std::unique_ptr<Entry[]> block(new (std::nothrow) Entry[kBlock]);
    if (!block) return false;
    blocks_.push_back(std::move(block));
    for (std::uint32_t i = kBlock; i-- > 0;) {
      if (size_ + i >= size_max_) continue;
      blocks_.back()[i].next_free = free_;
      free_ = size_ + i;
    }
    size_ = std::min(size_ + kBlock, size_max_);
    return true;
  }

  std::uint32_t size_max_;
  std::uint32_t size_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t free_ = kNone;
  std::vector<std::unique_ptr<Entry[]>> blocks_;
};

}  // namespace fairlead::base
