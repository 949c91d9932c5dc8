#pragma once
// Moves an application's own memory into the arena in place, so that peers can reach it. The whole pages of a range are
// copied to the arena's file, which is then mapped shared over them at the same address.
//
// A concurrent write between copy and mapping would be lost. The caller must therefore ensure that no other thread runs
// that could write (docs/shm.md). Only private anonymous memory is moved. The program sees two differences:
//   fork: the child gets a private view of these pages, so it cannot write into its parent's;
//   the end: the pages become private again, with their contents.
//
// Each moved range is a mapping of its own and splits its surroundings. The kernel allows a process some 65000
// mappings, so this class bounds its splits and leaves the rest to the program. Further ranges stay in place and are
// counted; peers reach them by system calls. Neighbours that return while no other thread runs merge into one mapping
// again.
//
// All functions are thread-safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "shm/arena.hpp"

namespace fairlead::shm {

/// The part of a range that peers can reach, and its place in the arena.
struct RangePlace {
  std::uint64_t begin = 0, end = 0;  // as offsets into the range
  std::uint64_t offset = 0;          // of `begin`, in the arena
  std::uint32_t remap = 0;
};

class RemappedRanges {
 public:
  static constexpr std::uint64_t kMovedMost = 1ULL << 30;  // bytes; other threads stand still while they are moved
  static constexpr std::uint32_t kApartMost = 512;         // moved ranges

  /// Allocations from 2 MiB to `huge_max` bytes get huge pages, if the kernel has any.
  explicit RemappedRanges(Arena& arena, std::uint64_t huge_max = 0);
  ~RemappedRanges();
  RemappedRanges(const RemappedRanges&) = delete;
  RemappedRanges& operator=(const RemappedRanges&) = delete;

  /// Moves the range, or adds a user if it is in the arena already. Returns nullopt if the range has no whole page,
  /// exceeds kMovedMost, is memory of another kind, or if kApartMost ranges are moved. `is_alone` states that no other
  /// thread can write to it now; without it, nothing new is moved.
  std::optional<RangePlace> take(std::span<std::byte> range, bool is_alone);
  /// Does the same for whole pages, some of which may be moved already. Returns the parts in order, or nothing if any
  /// part cannot be moved.
  std::vector<RangePlace> take_all(std::span<std::byte> pages, bool is_alone);
  /// Removes a user. The pages become private again with the last one.
  void release(std::uint32_t remap, bool is_alone);

  /// Returns the place in the arena of a range that lies in one moved range. Never waits: nullopt also if another
  /// thread moves or allocates memory at this moment.
  std::optional<std::uint64_t> place_of(std::span<const std::byte> range) const noexcept;

  /// Allocates at least `bytes` zeroed bytes in the arena; from 2 MiB on aligned to 2 MiB. Returns an empty span if
  /// there is no room.
  std::span<std::byte> allocate(std::uint64_t bytes);
  void free(std::span<std::byte> memory);

  std::uint64_t bytes() const noexcept;
  /// Returns how many ranges stayed in place because kApartMost were moved.
  std::uint64_t left_in_place() const noexcept;
  /// Returns the allocated bytes that got huge pages.
  std::uint64_t huge_bytes() const noexcept;

 private:
  struct Remap {
    std::span<std::byte> pages;
    std::uint64_t offset = 0;
    std::uint32_t users = 0;
    bool is_ours = false;  // allocated here, not moved
    bool is_huge = false;
  };

  std::size_t move_in(std::span<std::byte> pages, std::uint64_t offset) const;
  void move_out(const Remap& remap, bool is_alone);
  void release_one(std::uint32_t remap, bool is_alone);
  std::optional<RangePlace> find(std::span<std::byte> range, std::uint64_t before);
  std::optional<RangePlace> find_front(std::span<std::byte> pages, std::size_t& unmoved);
  std::uint32_t add(const Remap& remap);
  void forget(const Remap& remap);

  Arena& arena_;
  mutable std::mutex mutex_;
  std::vector<Remap> remaps_;
  std::vector<std::uint32_t> unused_;  // free indices of remaps_
  // Those in use; the program may have unmapped some of them.
  std::multimap<const std::byte*, std::uint32_t> by_begin_;
  std::uint32_t apart_ = 0;  // mappings moved, or moved back without merging
  std::uint64_t left_in_place_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t huge_bytes_ = 0;
  const std::uint64_t huge_max_;
};

}  // namespace fairlead::shm
