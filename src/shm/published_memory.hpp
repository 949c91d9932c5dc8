#pragma once
// Our memory that peers can map: what is published to all peers of our user, and what only those can map that may trace
// our process.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "shm/arena.hpp"
#include "shm/remapped_ranges.hpp"
#include "shm/traced_memory.hpp"
#include "wire/shm_record.hpp"

namespace fairlead::shm {

/// What a peer has mapped of our memory; bits of a word in the pair's page.
namespace sees {
inline constexpr std::uint32_t arena = 1, traced = 2;
}

/// It lives as long as any user of it, possibly longer than the connections.
struct PublishedMemory {
  PublishedMemory(Arena made, std::uint64_t huge_max, std::unique_ptr<TracedMemory> also_traced)
      : arena(std::move(made)), remapped(arena, huge_max), traced(std::move(also_traced)) {}

  /// Moves a region's memory to where peers find it, or adds a user if it is there. `is_remote`: the region has a
  /// remote right. Pass the result's `remap` to move_back().
  std::optional<RangePlace> move(std::span<std::byte> range, bool is_remote, bool is_alone) {
    if (is_remote) return remapped.take(range, is_alone);
    if (auto known = remapped.take(range, false)) return known;
    auto place = traced ? traced->take(range, is_alone) : std::nullopt;
    if (place) place->remap |= kOfTraced;
    return place;
  }
  void move_back(std::uint32_t remap, bool is_alone) {
    (remap & kOfTraced) != 0 ? traced->ranges().release(remap & ~kOfTraced, is_alone)
                             : remapped.release(remap, is_alone);
  }
  /// Returns where a peer that sees so much finds this memory, as records name places.
  std::optional<std::uint64_t> place_of(std::span<const std::byte> memory, std::uint32_t seen) const noexcept {
    if ((seen & sees::arena) != 0) {
      if (const auto place = arena.find(memory)) return place;
      if (const auto place = remapped.place_of(memory)) return place;
    }
    if ((seen & sees::traced) == 0 || !traced) return std::nullopt;
    const auto place = traced->ranges().place_of(memory);
    return place ? std::optional(*place | wire::kPlaceIsTraced) : std::nullopt;
  }

  Arena arena;
  RemappedRanges remapped;
  std::unique_ptr<TracedMemory> traced;  // null where it would give a new right

 private:
  static constexpr std::uint32_t kOfTraced = 1U << 31;
};

}  // namespace fairlead::shm
