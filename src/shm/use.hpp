#pragma once
// A hazard pointer: names what an initiator uses in its peer's memory. The initiator publishes it in the page that the
// two share, before it looks up the memory, and clears it after copying. An owner that withdraws an object waits for
// the initiators that name it (docs/one-sided.md).

#include <cstdint>

namespace fairlead::shm {

/// 48 bits. The bits above hold a turn number, by which the owner tells successive uses apart.
class Use {
 public:
  static constexpr int kTurnShift = 48;

  /// Names the region at `slot`, used through the queue pair at `pair_place`.
  static constexpr Use of_region(std::uint32_t slot, std::uint32_t pair_place) noexcept {
    return Use(std::uint64_t{pair_place & kPairMask} << kPairShift | (slot & kRegionMask));
  }
  static constexpr Use of_exposure(std::uint64_t key) noexcept { return Use(kExposure | (key & (kExposure - 1))); }

  constexpr std::uint64_t name() const noexcept { return name_; }
  /// Returns whether the published word `at` names an exposure.
  static constexpr bool is_of_exposure(std::uint64_t at) noexcept { return (at & kExposure) != 0; }

 private:
  friend class Withdrawn;
  static constexpr std::uint64_t kExposure = 1ULL << 47, kRegionMask = 0xFFFF, kPairMask = 0x3FFF;
  static constexpr int kPairShift = 16;

  explicit constexpr Use(std::uint64_t name) noexcept : name_(name) {}

  std::uint64_t name_;
};

/// An object that its owner has withdrawn: selects the uses that refer to it.
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

  /// Returns whether a peer that publishes `at` uses the object; 0: it uses nothing.
  constexpr bool is_used(std::uint64_t at) const noexcept { return at != 0 && (at & mask_) == name_; }

 private:
  constexpr Withdrawn(std::uint64_t mask, Use use) noexcept : mask_(mask), name_(use.name()) {}

  std::uint64_t mask_, name_;
};

}  // namespace fairlead::shm
