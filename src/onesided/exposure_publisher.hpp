#pragma once
// The owner's side of exposures: one-shot regions under a 64-bit key, which local peers access by themselves
// (docs/one-sided.md). The owner publishes them in the table of our arena. Those outside the arena are also published
// in records that only we can write.
//
// An initiator claims an exposure in the table by compare-and-swap, so only one succeeds. The owner withdraws it the
// same way, so nobody writes to a withdrawn exposure. A claimed exposure, or one outside the arena, ends later: when no
// hazard pointer names it. Its status is what the claimer reported before it left.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fairlead/error.hpp>

#include "onesided/own_tables.hpp"
#include "onesided/publish_count.hpp"

namespace fairlead::onesided {

/// What peers learn of an exposure.
struct ExposurePlan {
  std::uint64_t key = 0;
  std::span<const std::byte> memory;
  std::uint32_t port = 0;
  bool is_writable = false;
};

/// The peer that had claimed a cancelled exposure.
struct Claimer {
  std::uint64_t name = 0;          // its name in the table; 0: none, or the table contained an invalid name
  std::uint32_t generation = 0;    // generation of its slot
  std::uint64_t ring_read_at = 0;  // read its ring up to here for its report; set once it has left the memory
};

class ExposurePublisher {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  /// `connections` is null if shared memory is off. `cma_max` is the longest exposure outside the arena, in bytes.
  ExposurePublisher(shm::Connections* connections, std::uint64_t cma_max)
      : connections_(connections), own_(OwnTables::of(connections)), cma_max_(cma_max) {}

  bool is_seen() const noexcept { return own_.tables != nullptr; }
  enum class Answer : std::uint8_t { published, not_reached, crowded };
  /// `holder` is the caller's number for it, below 2^31. Returns `crowded` if another exposure has its place.
  Answer publish(std::uint32_t holder, const ExposurePlan& plan);
  /// Returns the holder of this key, or of another key with the same place; kNone if there is none.
  std::uint32_t find(std::uint64_t key) const {
    const std::uint32_t place = places_.empty() ? kNone : places_[place_of(key)];
    return place == kNone ? kNone : place & ~kOutside;
  }

  // Operations on the exposure of a key ------------------------------------------------------------------------------

  /// Withdraws the exposure because a message wants it. Returns false if a peer may have claimed it or use it; the
  /// peer's result then follows.
  bool take(std::uint64_t key);
  /// Withdraws the exposure. Returns nullopt if no peer had claimed it or still can: it is over. Otherwise end_of()
  /// tells its end.
  std::optional<Claimer> cancel(std::uint64_t key);
  /// Returns the status of a cancelled exposure, or nullopt while a peer may still use it. A claimer reports success
  /// before it leaves. So the claimer's ring is read first, to its end or for one ring length.
  std::optional<Status> end_of(std::uint64_t key, Claimer& claimer);
  /// Ends the exposure after the peer of slot `user` has used it: withdraws it and frees its place. Returns false if
  /// another peer uses it; the caller then waits for is_used() to be false and calls free().
  bool end(std::uint64_t key, std::uint32_t user) {
    hide(key);
    if (is_used_outside(key, user)) return false;
    places_[place_of(key)] = kNone;
    return true;
  }
  bool is_used(std::uint64_t key) const { return is_used_outside(key, kNone); }
  /// Returns whether a peer that is gone had claimed the exposure, and removes the claim.
  bool take_from(const shm::Departure& gone, std::uint64_t key);
  /// Frees the exposure's place.
  void free(std::uint64_t key) {
    hide(key);
    places_[place_of(key)] = kNone;
  }

 private:
  static constexpr std::uint32_t kOutside = 1U << 31;  // flag in places_: peers reach the memory by system calls

  static constexpr std::uint32_t place_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key % SharedTables::kExposures);
  }
  PublishedExposure& published(std::uint64_t key) { return own_.tables->exposures[place_of(key)]; }
  bool is_outside(std::uint64_t key) const { return (places_[place_of(key)] & kOutside) != 0; }
  bool is_used_outside(std::uint64_t key, std::uint32_t except) const {
    return is_outside(key) && connections_->read_sections().is_used(shm::Withdrawn::exposure(key), except);
  }
  void hide(std::uint64_t key) {
    hide_own(key);
    published(key).holder.store(0, std::memory_order_relaxed);
  }
  void hide_own(std::uint64_t key) {
    if (is_outside(key)) own_.records->exposures[place_of(key)].key.store(0, std::memory_order_relaxed);
  }
  bool may_live(std::uint64_t name) const;

  shm::Connections* connections_;
  OwnTables own_;
  std::uint64_t cma_max_;
  std::vector<std::uint32_t> places_;  // holders; allocated on first use
  PublishCount publications_;
};

}  // namespace fairlead::onesided
