#pragma once
// Registered memory: what a 32-bit key names, with which rights, in which protection domain.
//
// A key has 24 bits of slot and 8 of variant, which changes with each use of the slot. Free slots are reused in FIFO
// order, from at least kRotation of them. So a stale key matches none of the next 255 * kRotation regions.
//
// A memory window is an entry whose memory is part of a region's. A region must not be removed while windows are bound
// to it. A window keeps its slot while it is not bound. Each binding has its own key, chosen by the device (type 1) or
// the program (type 2).
//
// A message that the transports send by reference holds the region's slot. A removed region cannot be found any more.
// When its last hold has ended, the slot is reused and the owner may unmap the memory. A region whose memory is changed
// keeps its key, and peers continue to use it. So holds from before the change are counted separately.
//
// Local peers may access the memory directly. While a withdrawal from them is open, the slot is not reused and its
// record is empty, so they send requests as messages.

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

/// The part of a region that lies in the arena, where local peers access it directly (shm/arena.hpp).
struct ArenaPlace {
  std::uint64_t begin = 0, end = 0;  // offsets in the region, in bytes; equal: no part
  std::uint64_t offset = 0;          // of `begin` in the arena, in bytes
};

struct RegionPlan {
  std::byte* base = nullptr;
  std::uint64_t length = 0;   // bytes
  std::uint64_t iova = 0;     // the address that requests use for the first byte
  std::uint32_t access = 0;   // verbs::access
  std::uint32_t domain = 0;   // protection domain
  ArenaPlace arena{};         // set by the engine
  bool is_foreign = false;    // memory of another process: not moved to the arena
  bool is_on_demand = false;  // its pages may not exist yet: not moved either
  /// The whole address space. Its length is 0 here, so locate() checks for it only after the range check has failed.
  bool is_everything = false;
  /// A null region: any range, and no memory. Its length is 0 here, too.
  bool is_null = false;
};

class RegionTable {
 public:
  static constexpr std::uint32_t kRotation = 1024;
  static constexpr std::uint32_t kWindowsMost = 65536;

  explicit RegionTable(std::uint32_t regions_max) : regions_max_(regions_max) {}

  /// Returns the key, or 0 at the limit.
  std::uint32_t add(const RegionPlan& plan);
  /// Adds a window that is not bound. Its key names no memory yet; 0 at the limit.
  std::uint32_t add_window(verbs::WindowType type, std::uint32_t domain);
  /// Binds a window for a queue pair with this number and domain; a length of 0 ends a binding. Returns the reason of a
  /// refusal, or `none`.
  verbs::Cause bind(const verbs::WindowBinding& binding, std::uint32_t domain, std::uint32_t pair);
  /// Returns whether this queue pair, or its peer, may invalidate the window with this key.
  bool is_invalidable(std::uint32_t key, std::uint32_t domain, std::uint32_t pair) const;
  void invalidate(std::uint32_t key) { unbind(entries_[key >> 8]); }
  /// `key`: any key of the window.
  void remove_window(std::uint32_t key);
  /// Returns whether windows are bound to this region.
  bool has_windows(std::uint32_t key) const { return find(key) != nullptr && entries_[key >> 8].windows != 0; }
  void unbind_windows_of_region(std::uint32_t key);
  void unbind_windows_of_pair(std::uint32_t number);

  /// Removes a region: the key names nothing any more. Returns false if it named nothing before.
  bool remove(std::uint32_t key);
  /// Changes what the key names. Returns `stale` if it names nothing now. Returns `again` if messages hold the present
  /// memory and also the memory before the last change.
  Status change(std::uint32_t key, const RegionPlan& plan);
  /// Returns whether a message holds the region in this slot: its present memory, or that before its last change.
  bool is_held(std::uint32_t key) const {
    const Entry& entry = entries_[key >> 8];
    return entry.holds[0] != 0 || entry.holds[1] != 0;
  }
  /// Returns whether a message holds the memory that the region had before its last change.
  bool is_held_from_before(std::uint32_t key) const {
    const Entry& entry = entries_[key >> 8];
    return entry.holds[entry.epoch() ^ 1] != 0;
  }
  /// Returns whether a hold is for this region. `is_from_before`: only holds from before its last change count.
  bool is_hold_of(std::uint32_t hold, std::uint32_t key, bool is_from_before) const {
    return slot_of(hold) == key >> 8 && (!is_from_before || hold != entries_[key >> 8].hold);
  }
  bool is_known(std::uint32_t key) const { return find(key) != nullptr; }
  /// Begins to withdraw the region's memory from local peers, because it is removed or changed. Several withdrawals of
  /// a region may be open.
  void begin_withdrawal(std::uint32_t key) { ++entries_[key >> 8].withdrawals; }
  void end_withdrawal(std::uint32_t key);
  /// Returns whether local peers may access it directly.
  bool is_open(std::uint32_t key) const { return is_known(key) && entries_[key >> 8].withdrawals == 0; }
  const RegionPlan& plan(std::uint32_t key) const { return entries_[key >> 8].plan; }

  /// Returns a permit for `length` bytes from `address` on, if the key's region contains them, is in this domain and
  /// grants all these rights. Else the permit is refused, with the reason. `pair`: number of the queue pair on which a
  /// peer uses the key; 0: this end, which cannot use windows.
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
      return locate_without_bounds(*entry, address, length, access);
    }
    return {plan.base + offset, length, entry->hold};
  }

  /// Adds a hold. `hold`: Permit::slot().
  void hold(std::uint32_t hold) { ++entries_[slot_of(hold)].holds[(hold & kEpoch) != 0]; }
  void let_go(std::uint32_t hold);
  static std::uint32_t slot_of(std::uint32_t hold) { return hold & ~kEpoch; }
  /// For QueuePairs::check(). `holds`: by slot, counted from the messages in flight.
  void check(const std::vector<std::uint32_t>& holds) const;

  std::uint32_t used() const { return used_; }

 private:
  friend class PairsHandover;

  static constexpr std::uint32_t kNone = ~0U;
  static constexpr std::uint32_t kEpoch = 1U << 30;  // part of a hold, besides the slot; changes with the memory

  struct Entry {
    RegionPlan plan;
    std::uint32_t hold = 0;                // Permit::slot(): its own, or that of a window's region
    std::array<std::uint32_t, 2> holds{};  // counts, by epoch
    std::uint32_t withdrawals = 0;         // open ones
    std::uint32_t next_free = kNone;
    std::uint32_t windows = 0;     // of a region: number bound to it
    std::uint32_t region = kNone;  // of a window: slot of its region
    std::uint32_t pair = 0;        // of a window of type 2: number of the queue pair that bound it
    verbs::WindowType type{};      // of a window
    std::uint8_t variant = 0;      // 0 before the first use, or chosen by a program for its window
    bool is_used = false;          // the key names memory

    bool is_window() const { return type != verbs::WindowType{}; }
    bool is_in_use() const { return is_used || holds[0] != 0 || holds[1] != 0 || withdrawals != 0; }
    std::size_t epoch() const { return (hold & kEpoch) != 0 ? 1 : 0; }
  };

  const Entry* find(std::uint32_t key) const {
    const std::uint32_t slot = key >> 8;
    if (slot >= entries_.size()) return nullptr;
    const Entry& entry = entries_[slot];
    return entry.is_used && entry.variant == (key & 0xFF) ? &entry : nullptr;
  }
  /// Returns the window of any of its keys; null if there is none.
  Entry* find_window(std::uint32_t key) {
    const std::uint32_t slot = key >> 8;
    return slot < entries_.size() && entries_[slot].is_window() ? &entries_[slot] : nullptr;
  }
  static Permit locate_without_bounds(const Entry& entry, std::uint64_t address, std::uint64_t length,
                                      std::uint32_t access);
  verbs::Cause judge(const verbs::WindowBinding& binding, std::uint32_t domain) const;
  void unbind(Entry& window);
  std::uint32_t take_slot();
  void give_back(std::uint32_t slot);
  /// Gives back the slot of a region that is not in use any more.
  void free(std::uint32_t slot);

  std::uint32_t regions_max_;
  std::uint32_t used_ = 0;     // regions, also those removed and still held
  std::uint32_t windows_ = 0;  // bound or not
  std::uint32_t first_free_ = kNone, last_free_ = kNone;
  std::vector<Entry> entries_;
};

}  // namespace fairlead::qp
