#pragma once
// An application's own memory, moved into the arena in place, so that peers can reach it: the whole pages of a range
// get a copy in the arena's file, which is then mapped over them, shared, at the same address.
//
// A write by somebody else between copy and mapping would be lost, so the caller makes sure that no other thread runs
// that could (docs/shm.md). Only private memory without a file is moved; the program notices nothing of it, but for
//   fork: the child gets a private view of these pages, so it cannot write into its parent's;
//   the end: the pages are private again, with what they hold.
//
// Each moved range is a mapping of its own and parts its surroundings, of which the kernel allows a process some 65000:
// so we part a bounded number, and leave the program the rest. What comes after stays where it is and is counted; peers
// reach it by system calls. Neighbours that come back while nobody else runs are one mapping again.
//
// Any thread may call.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "shm/arena.hpp"

namespace fairlead::shm {

/// What of a range peers can reach, and where that lies in the arena.
struct RangePlace {
  std::uint64_t begin = 0, end = 0;  // bytes of the range
  std::uint64_t offset = 0;          // of `begin`, in the arena
  std::uint32_t remap = 0;
};

class RemappedRanges {
 public:
  static constexpr std::uint64_t kMovedMost = 1ULL << 30;  // bytes: meanwhile everybody stands still
  static constexpr std::uint32_t kApartMost = 512;         // moved ranges

  /// What is allocated from 2 MiB to `huge_max` bytes gets huge pages, if the kernel has some.
  explicit RemappedRanges(Arena& arena, std::uint64_t huge_max = 0);
  ~RemappedRanges();
  RemappedRanges(const RemappedRanges&) = delete;
  RemappedRanges& operator=(const RemappedRanges&) = delete;

  /// Nothing if the range has no whole page, more than kMovedMost, memory of another kind, or kApartMost are moved.
  /// What is in the arena already is counted once more. `is_alone`: nobody else can write to it now; without that
  /// nothing new is moved.
  std::optional<RangePlace> take(std::span<std::byte> range, bool is_alone);
  /// The same for all of these whole pages, of which some may be moved already, each part by itself, in order; nothing
  /// if any of them is not to be had.
  std::vector<RangePlace> take_all(std::span<std::byte> pages, bool is_alone);
  /// With the last user the pages become private again.
  void release(std::uint32_t remap, bool is_alone);

  /// Zeroed memory that lies in the arena from the beginning, at least so many bytes, from 2 MiB on aligned to that;
  /// empty if there is no room.
  std::span<std::byte> allocate(std::uint64_t bytes);
  void free(std::span<std::byte> memory);

  std::uint64_t bytes() const noexcept;
  /// Ranges that were not moved because kApartMost were.
  std::uint64_t left_in_place() const noexcept;
  /// Allocated ones that got huge pages.
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
  std::vector<std::uint32_t> unused_;                        // of remaps_
  std::multimap<const std::byte*, std::uint32_t> by_begin_;  // those in use; the program may have unmapped some
  std::uint32_t apart_ = 0;                                  // moved, or moved back as a mapping of its own
  std::uint64_t left_in_place_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t huge_bytes_ = 0;
  const std::uint64_t huge_max_;
};

}  // namespace fairlead::shm
