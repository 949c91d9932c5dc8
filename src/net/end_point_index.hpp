#pragma once
// Maps addresses to end points: a hash table with open addressing. A look-up reads one cache line of this table and one
// of the end point. A batch of look-ups can prefetch both.

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/core.hpp"

namespace fairlead::net {

struct EndPointState;

class EndPointIndex {
 public:
  /// `seed` of the hash must be secret, because peers choose their addresses.
  explicit EndPointIndex(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t hash(const engine::RemotePort& remote) const noexcept;
  /// Returns null if there is none. `hash` is hash(remote).
  EndPointState* find(const engine::RemotePort& remote, std::uint64_t hash) const noexcept;
  /// Prefetches the slot, which find() reads first for this hash.
  void prefetch_slot(std::uint64_t hash) const noexcept;
  /// Reads the slot. Returns the first end point of this hash, whose address may differ, and prefetches it. Null: none.
  EndPointState* prefetch_first(std::uint64_t hash) const noexcept;

  /// Makes room, so that the next insert() does not allocate.
  void reserve_one();
  /// The address must not be in the table yet.
  void insert(EndPointState* state, std::uint64_t hash) noexcept;
  /// Removes every state for which `is_gone(state)` returns true. `is_gone` may destroy the state.
  template <typename IsGone>
  void erase_if(IsGone&& is_gone) {
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots_.size()));
    used_ = 0;
    for (const Slot& slot : before) {
      if (slot.state != nullptr && !is_gone(*slot.state)) insert(slot.state, slot.hash);
    }
  }

  std::size_t size() const { return used_; }

 private:
  static constexpr std::size_t kSlotsLeast = 16;

  struct Slot {
    std::uint64_t hash = 0;
    EndPointState* state = nullptr;  // null: slot is free
  };
  std::size_t home(std::uint64_t hash) const { return hash & mask_; }
  std::size_t next(std::size_t place) const { return (place + 1) & mask_; }

  std::uint64_t seed_;
  // Size is a power of two; at most half of the slots are used.
  std::vector<Slot> slots_ = std::vector<Slot>(kSlotsLeast);
  std::size_t mask_ = kSlotsLeast - 1;
  std::size_t used_ = 0;
};

}  // namespace fairlead::net
