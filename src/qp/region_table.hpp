#pragma once
// Long-lived registered memory: what a 32-bit key names, with which rights, in which protection domain.
//
// A key is 24 bits of slot and 8 of variant, which changes with each use of the slot. Slots come back first in, first
// out, from at least kRotation of them, so a stale key matches none of the next 255 * kRotation regions.
//
// A memory window is a region whose memory is part of another's, which it cannot outlive. It keeps its slot while it is
// bound to nothing; each binding has a key, of the device (type 1) or of the program (type 2).
//
// Whoever reads the memory later (the link, by reference) holds the region's slot; a removed region cannot be found any
// more, but its slot comes back, and its owner may unmap it, only when the last hold is gone. A region whose memory is
// changed keeps its key, and peers go on using it: so holds from before the change are counted apart.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_request.hpp>

#include "base/ensure.hpp"
#include "qp/permit.hpp"

namespace fairlead::qp {

/// The part of a region that peers of this host can reach by themselves (shm/arena.hpp).
struct ArenaPlace {
  std::uint64_t begin = 0, end = 0;  // bytes of the region; equal: no part
  std::uint64_t offset = 0;          // of `begin`, in the arena
};

struct RegionPlan {
  std::byte* base = nullptr;
  std::uint64_t length = 0;  // bytes
  std::uint64_t iova = 0;    // the address that requests use for the first byte
  std::uint32_t access = 0;  // verbs::access
  std::uint32_t domain = 0;  // who else may use it
  ArenaPlace arena{};        // set by the engine
  bool is_foreign = false;   // another process's: it stays where it is
  /// The whole address space, with length 0 here, so that it is found where no other region would be.
  bool is_everything = false;
};

class RegionTable {
 public:
  static constexpr std::uint32_t kRotation = 1024;
  static constexpr std::uint32_t kWindowsMost = 65536;

  explicit RegionTable(std::uint32_t regions_max) : regions_max_(regions_max) {}

  /// The key, or 0 at the bound.
  std::uint32_t add(const RegionPlan& plan);
  /// A window that is bound to nothing: a key that names it and no memory, or 0 at the bound.
  std::uint32_t add_window(verbs::WindowType type, std::uint32_t domain);
  /// For a queue pair of that number and domain.
  verbs::Cause bind(const verbs::WindowBinding& binding, std::uint32_t domain, std::uint32_t pair);
  /// Whether that queue pair, or its peer, may invalidate the window with this key.
  bool is_invalidable(std::uint32_t key, std::uint32_t domain, std::uint32_t pair) const;
  void invalidate(std::uint32_t key) { unbind(entries_[key >> 8]); }
  /// By any of its keys.
  void remove_window(std::uint32_t key);
  /// Whether windows are bound to this region.
  bool has_windows(std::uint32_t key) const { return find(key) != nullptr && entries_[key >> 8].windows != 0; }
  void unbind_windows_of_region(std::uint32_t key);
  void unbind_windows_of_pair(std::uint32_t number);

  /// From now on the key names nothing. False if it does not now.
  bool remove(std::uint32_t key);
  /// The key names this from now on. `stale` if it names nothing now, `again` while what it was before its last change
  /// is held.
  Status change(std::uint32_t key, const RegionPlan& plan);
  /// Whether somebody still reads the memory of a region of this slot.
  bool is_held(std::uint32_t key) const {
    const Entry& entry = entries_[key >> 8];
    return entry.holds[0] != 0 || entry.holds[1] != 0;
  }
  /// Or the memory that it had before its last change.
  bool is_held_from_before(std::uint32_t key) const {
    const Entry& entry = entries_[key >> 8];
    return entry.holds[entry.epoch() ^ 1] != 0;
  }
  /// Whether such a hold is of that region: of all its memory, or only of what it was before its last change.
  bool is_hold_of(std::uint32_t hold, std::uint32_t key, bool is_from_before) const {
    return slot_of(hold) == key >> 8 && (!is_from_before || hold != entries_[key >> 8].hold);
  }
  bool is_known(std::uint32_t key) const { return find(key) != nullptr; }
  const RegionPlan& plan(std::uint32_t key) const { return entries_[key >> 8].plan; }

  /// `length` bytes from `address` on, if the key's region contains them all, in that domain, with all these rights.
  /// `pair`: the number of the queue pair to which a peer names the key; 0: this end itself, which uses no window.
  Permit locate(std::uint32_t key, std::uint32_t domain, std::uint64_t address, std::uint64_t length,
                std::uint32_t access, std::uint32_t pair = 0) const {
    const Entry* entry = find(key);
    if (entry == nullptr || entry->plan.domain != domain) return Permit(verbs::Cause::key_unknown);
    if (entry->is_window() && (pair == 0 || (entry->pair != 0 && entry->pair != pair))) [[unlikely]]
      return Permit(verbs::Cause::key_unknown);
    const RegionPlan& plan = entry->plan;
    if ((plan.access & access) != access) return Permit(verbs::Cause::no_right);
    const std::uint64_t offset = address - plan.iova;
    if (address < plan.iova || offset > plan.length || length > plan.length - offset) {
      return plan.is_everything ? locate_anywhere(address, length, access, entry->hold)
                                : Permit(verbs::Cause::out_of_range);
    }
    return {plan.base + offset, length, entry->hold};
  }

  /// Counts one more hold, as a permit names it.
  void hold(std::uint32_t hold) { ++entries_[slot_of(hold)].holds[(hold & kEpoch) != 0]; }
  void let_go(std::uint32_t hold);
  static std::uint32_t slot_of(std::uint32_t hold) { return hold & ~kEpoch; }
  /// As QueuePairs::check(). `holds`: by slot, as those count that hold.
  void check(const std::vector<std::uint32_t>& holds) const;

  std::uint32_t used() const { return used_; }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr std::uint32_t kEpoch = 1U << 30;  // in a hold, besides the slot: changes with the memory

  struct Entry {
    RegionPlan plan;
    std::uint32_t hold = 0;                // what permits name: its own, or of a window its region's
    std::array<std::uint32_t, 2> holds{};  // by epoch
    std::uint32_t next_free = kNone;
    std::uint32_t windows = 0;     // of a region: bound to it
    std::uint32_t region = kNone;  // of a window: the slot that it is bound to
    std::uint32_t pair = 0;        // of a window of type 2: the queue pair that has bound it
    verbs::WindowType type{};      // of a window
    std::uint8_t variant = 0;      // 0 only before the first use
    bool is_used = false;          // the key names memory

    bool is_window() const { return type != verbs::WindowType{}; }
    std::size_t epoch() const { return (hold & kEpoch) != 0 ? 1 : 0; }
  };

  const Entry* find(std::uint32_t key) const {
    const std::uint32_t slot = key >> 8;
    if (slot >= entries_.size()) return nullptr;
    const Entry& entry = entries_[slot];
    return entry.is_used && entry.variant == (key & 0xFF) ? &entry : nullptr;
  }
  /// By any of its keys; null if it is none.
  Entry* find_window(std::uint32_t key) {
    const std::uint32_t slot = key >> 8;
    return slot < entries_.size() && entries_[slot].is_window() ? &entries_[slot] : nullptr;
  }
  static Permit locate_anywhere(std::uint64_t address, std::uint64_t length, std::uint32_t access, std::uint32_t hold);
  verbs::Cause judge(const verbs::WindowBinding& binding, std::uint32_t domain) const;
  void unbind(Entry& window);
  std::uint32_t take_slot();
  void give_back(std::uint32_t slot);

  std::uint32_t regions_max_;
  std::uint32_t used_ = 0;     // also those removed and still held
  std::uint32_t windows_ = 0;  // bound or not
  std::uint32_t first_free_ = kNone, last_free_ = kNone;
  std::vector<Entry> entries_;
};

}  // namespace fairlead::qp
