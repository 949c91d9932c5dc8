#pragma once
// The owner's side of exposures: memory for one use, under a 64-bit key, that peers of this host carry out by
// themselves (docs/one-sided.md). It is published in the table of our arena, and outside the arena also in records that
// only we can write.
//
// Whoever wants a published exposure claims it in the table: one succeeds. The owner withdraws it likewise, so nobody
// writes to what has been withdrawn. If somebody had claimed it, or it lies outside the arena, it ends only when nobody
// says that it is at it, and as what the claimer told before it left.

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

/// What peers are told of an exposure.
struct ExposurePlan {
  std::uint64_t key = 0;
  std::span<const std::byte> memory;
  std::uint32_t port = 0;
  bool is_writable = false;
};

/// The peer that had claimed what was cancelled.
struct Claimer {
  std::uint64_t name = 0;          // as it is called in the table; 0: none, or the table has lied
  std::uint32_t generation = 0;    // of its slot
  std::uint64_t ring_read_at = 0;  // when it had left, and so told what it has done
};

class ExposurePublisher {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  /// Null: there are no peers of this host. `cma_max`: bytes outside the arena that are published.
  ExposurePublisher(shm::Connections* connections, std::uint64_t cma_max)
      : connections_(connections), own_(OwnTables::of(connections)), cma_max_(cma_max) {}

  bool is_seen() const noexcept { return own_.tables != nullptr; }
  enum class Answer : std::uint8_t { published, not_reached, crowded };
  /// `holder`: how the caller calls it, below 2^31. Crowded: another one has its place.
  Answer publish(std::uint32_t holder, const ExposurePlan& plan);
  /// Who was published under this key, or another one of the same place; kNone.
  std::uint32_t find(std::uint64_t key) const {
    const std::uint32_t place = places_.empty() ? kNone : places_[place_of(key)];
    return place == kNone ? kNone : place & ~kOutside;
  }

  // Of what is published under that key ---------------------------------------------------------------------------

  /// For a message that wants it. False if a peer may have claimed it, or be at it: then its result comes.
  bool take(std::uint64_t key);
  /// Nobody finds it any more. Nothing if nobody had claimed it, nor can any more: it is over.
  std::optional<Claimer> cancel(std::uint64_t key);
  /// How it ends, if it was cancelled, when nobody is at it any more. Its claimer has told before it left, if it has
  /// done it; so its ring is read first, as far as it goes or a ring's length.
  std::optional<Status> end_of(std::uint64_t key, Claimer& claimer);
  /// The peer of that slot has used it: nobody finds it any more, and its place is free. False if another one is at it:
  /// ask is_used(), then free().
  bool end(std::uint64_t key, std::uint32_t user) {
    hide(key);
    if (is_used_outside(key, user)) return false;
    places_[place_of(key)] = kNone;
    return true;
  }
  bool is_used(std::uint64_t key) const { return is_used_outside(key, kNone); }
  /// Whether a peer that is gone had claimed it. Then it has it no more.
  bool take_from(const shm::Departure& gone, std::uint64_t key);
  /// Its place is free, and peers find nothing there.
  void free(std::uint64_t key) {
    hide(key);
    places_[place_of(key)] = kNone;
  }

 private:
  static constexpr std::uint32_t kOutside = 1U << 31;  // of a place: peers reach it by system calls

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
  std::vector<std::uint32_t> places_;  // holders; made when needed
  PublishCount publications_;
};

}  // namespace fairlead::onesided
