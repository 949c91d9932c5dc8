#pragma once
// Finds the end point of an address: a hash table with open addressing. A look-up reads one line of this table and one
// of the end point; for a batch of look-ups both can be prefetched.

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/completion.hpp"

namespace fairlead::net {

struct EndPointState;

class EndPointIndex {
 public:
  /// `seed`: of the hash. Peers choose their addresses, so it has to be a secret.
  explicit EndPointIndex(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t hash(const engine::RemotePort& remote) const noexcept;
  /// Null if there is none. `hash`: of `remote`.
  EndPointState* find(const engine::RemotePort& remote, std::uint64_t hash) const noexcept;
  /// What find() reads first for this hash.
  void prefetch_slot(std::uint64_t hash) const noexcept;
  /// What find() reads then. Reads the slot.
  void prefetch_state(std::uint64_t hash) const noexcept;

  /// The next insert() allocates nothing.
  void reserve_one();
  /// Of an address that is not there yet.
  void insert(EndPointState* state, std::uint64_t hash) noexcept;
  /// Removes whatever `is_gone(state)`, which may destroy it.
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
    EndPointState* state = nullptr;  // null: free
  };
  std::size_t home(std::uint64_t hash) const { return hash & (slots_.size() - 1); }
  std::size_t next(std::size_t place) const { return (place + 1) & (slots_.size() - 1); }

  std::uint64_t seed_;
  std::vector<Slot> slots_ = std::vector<Slot>(kSlotsLeast);  // a power of two; at most half are used
  std::size_t used_ = 0;
};

}  // namespace fairlead::net
