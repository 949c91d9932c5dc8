#pragma once
// What an initiator is at in its peer's memory: a hazard pointer. The initiator says it in the page of the two before
// it looks the memory up, until it has copied; the owner, who withdraws something, waits for those who say that they
// are at it (docs/one-sided.md).

#include <cstdint>

namespace fairlead::shm {

/// 48 bits. Above them stands a turn, by which the owner tells one time from the next.
class Use {
 public:
  static constexpr int kTurnShift = 48;

  /// Of a region, by its slot, through the queue pair that has this place.
  static constexpr Use of_region(std::uint32_t slot, std::uint32_t pair_place) noexcept {
    return Use(std::uint64_t{pair_place & kPairMask} << kPairShift | (slot & kRegionMask));
  }
  static constexpr Use of_exposure(std::uint64_t key) noexcept { return Use(kExposure | (key & (kExposure - 1))); }

  constexpr std::uint64_t name() const noexcept { return name_; }
  /// Whether this is what a peer says that it is at.
  static constexpr bool is_of_exposure(std::uint64_t at) noexcept { return (at & kExposure) != 0; }

 private:
  friend class Withdrawn;
  static constexpr std::uint64_t kExposure = 1ULL << 47, kRegionMask = 0xFFFF, kPairMask = 0x3FFF;
  static constexpr int kPairShift = 16;

  explicit constexpr Use(std::uint64_t name) noexcept : name_(name) {}

  std::uint64_t name_;
};

/// What an owner has withdrawn: which uses are of it.
class Withdrawn {
 public:
  static constexpr Withdrawn region(std::uint32_t slot) noexcept {
    return {Use::kExposure | Use::kRegionMask, Use::of_region(slot, 0)};
  }
  static constexpr Withdrawn pair(std::uint32_t place) noexcept {
    return {Use::kExposure | Use::kPairMask << Use::kPairShift, Use::of_region(0, place)};
  }
  static constexpr Withdrawn exposure(std::uint64_t key) noexcept {
    return {(1ULL << Use::kTurnShift) - 1, Use::of_exposure(key)};
  }

  /// `at`: what a peer says; 0: nothing.
  constexpr bool is_used(std::uint64_t at) const noexcept { return at != 0 && (at & mask_) == name_; }

 private:
  constexpr Withdrawn(std::uint64_t mask, Use use) noexcept : mask_(mask), name_(use.name()) {}

  std::uint64_t mask_, name_;
};

}  // namespace fairlead::shm
