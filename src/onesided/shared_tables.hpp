#pragma once
// The tables at the start of an engine's arena (shm/arena.hpp). They describe its regions, queue pairs and exposures to
// local peers, which then carry out one-sided operations by themselves.
//
// Only the owner writes records; initiators only swap the holder of an exposure. The owner reads back nothing except
// the results of its own swaps. Each record is a seqlock: its version is even while the record is valid and odd during
// a change. A reader copies the record and checks the version again. The reader also checks the copy against the size
// of the arena, so a lying owner misleads others only about its own memory. A malicious peer can write here, too, so
// versions come from the owner's private count.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "onesided/publish_count.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::onesided {

// Bytes; bounds the time for which a copy occupies the initiator's engine.
inline constexpr std::uint64_t kCarriedOutMax = 64ULL << 20;

template <typename Value>
class SharedRecord {
  static_assert(sizeof(Value) % sizeof(std::uint64_t) == 0);
  static constexpr std::size_t kWords = sizeof(Value) / sizeof(std::uint64_t);

 public:
  using Image = std::array<std::uint64_t, 1 + kWords>;

  /// [owner] Publishes a new value.
  void publish(const Value& value, PublishCount& publications) noexcept {
    const auto plain = std::bit_cast<std::array<std::uint64_t, kWords>>(value);
    const std::uint64_t version = publications.next();
    version_.store(version - 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(plain[i], std::memory_order_relaxed);
    version_.store(version, std::memory_order_release);
  }
  /// [initiator] Reads the value. Returns false if it is being changed.
  bool read(Value& value) const noexcept {
    std::array<std::uint64_t, kWords> plain;
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < kWords; ++i) plain[i] = words_[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    value = std::bit_cast<Value>(plain);
    return version % 2 == 0 && version_.load(std::memory_order_relaxed) == version;
  }
  /// [initiator] Checks two successive copies that a system call made in arbitrary order. Returns false if the record
  /// was being changed. A word newer than the first copy's version shows in the second copy's version; an older word
  /// differs between the copies.
  static bool read(const Image& first, const Image& second, Value& value) noexcept {
    std::array<std::uint64_t, kWords> plain;
    std::copy(first.begin() + 1, first.end(), plain.begin());
    value = std::bit_cast<Value>(plain);
    return first == second && first[0] % 2 == 0;
  }

 private:
  std::atomic<std::uint64_t> version_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

struct SharedRegion {
  std::uint32_t key = 0;  // 0: empty
  std::uint32_t domain = 0;
  std::uint64_t access = 0;
  std::uint64_t iova = 0, length = 0;  // bytes
  std::uint64_t begin = 0, end = 0;    // the part in the arena
  std::uint64_t offset = 0;            // of `begin`; in OwnedRecords its address
};

struct SharedPair {
  std::array<std::uint8_t, 16> peer_ip{};  // the connected peer
  std::uint32_t peer_scope = 0, peer_port = 0;
  std::uint32_t number = 0, peer_number = 0;
  std::uint32_t domain = 0;
  // Access flags; 0 while it accepts no requests; excludes reads and atomics if it answers none.
  std::uint32_t rights = 0;
};

/// Memory for one put or one get.
struct SharedExposure {
  std::uint64_t key = 0;
  std::uint64_t offset = 0, length = 0;  // in the arena; offset 0: outside, see the owner's records
  std::uint32_t port = 0;
  std::uint32_t is_writable = 0;
};

/// An initiator claims the exposure by swapping the key in `holder` for its own name. The owner withdraws it by
/// swapping in 0. A name is the doorbell bit that the owner assigned to the peer, plus one, so it is less than any key.
struct alignas(64) PublishedExposure {
  std::atomic<std::uint64_t> holder{0};
  SharedRecord<SharedExposure> record;

  /// [owner] Publishes the exposure.
  void publish(const SharedExposure& exposure, PublishCount& publications) noexcept {
    record.publish(exposure, publications);
    holder.store(exposure.key, std::memory_order_release);
  }
  /// Replaces `from` by `to`. Returns the previous value.
  std::uint64_t swap(std::uint64_t from, std::uint64_t to) noexcept {
    holder.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_relaxed);
    return from;
  }
  bool claim(std::uint64_t key, std::uint64_t name) noexcept { return swap(key, name) == key; }
};

struct alignas(4096) SharedTables {
  static constexpr std::uint32_t kRegions = 65536, kPairs = wire::PairPort::kPairs, kExposures = 16384;
  std::array<SharedRecord<SharedRegion>, kRegions> regions;
  std::array<SharedRecord<SharedPair>, kPairs> pairs;
  std::array<PublishedExposure, kExposures> exposures;
};
/// A record that only the owner can write. Others read it by system calls (shm/identity.hpp): no other peer may
/// influence an address in the owner's process. A place is reused when nobody holds it any more.
struct OwnedExposure {
  std::atomic<std::uint64_t> key{0};  // 0: withdrawn
  std::uint64_t address = 0, length = 0;
  std::uint64_t is_writable = 0;

  /// [owner] Publishes the record.
  void publish(const OwnedExposure& exposure) noexcept {
    address = exposure.address;
    length = exposure.length;
    is_writable = exposure.is_writable;
    key.store(exposure.key.load(std::memory_order_relaxed), std::memory_order_release);
  }
};
/// Regions and queue pairs, as in the tables. A region's record covers all of the region, by its address.
struct OwnedRecords {
  std::array<OwnedExposure, SharedTables::kExposures> exposures;
  std::array<SharedRecord<SharedRegion>, SharedTables::kRegions> regions;
  std::array<SharedRecord<SharedPair>, SharedTables::kPairs> pairs;
};
static_assert(sizeof(OwnedExposure) == 32);

static_assert(sizeof(SharedRecord<SharedRegion>) == 64 &&
              sizeof(SharedRecord<SharedPair>) == sizeof(SharedRecord<SharedPair>::Image) &&
              sizeof(PublishedExposure) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace fairlead::onesided
