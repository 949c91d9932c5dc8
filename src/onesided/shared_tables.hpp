#pragma once
// What an engine tells its peers of the same host of its regions, queue pairs and exposed memory, at the start of its
// arena (shm/arena.hpp), so that they can carry out one-sided requests by themselves.
//
// Written by the owner alone, who never reads it, but for the result of its own swaps. A record is even while it holds,
// odd while it is being changed; readers take a copy and look again. The reader checks the copy against the size of the
// arena: whoever lies here misleads others about his own memory only. Every peer of the owner can write here, too, so
// the versions of records come from the owner's own count.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "onesided/publish_count.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::onesided {

inline constexpr std::uint64_t kCarriedOutMax = 64ULL << 20;  // bytes: while we copy, our engine does nothing else

template <typename Value>
class SharedRecord {
  static_assert(sizeof(Value) % sizeof(std::uint64_t) == 0);
  static constexpr std::size_t kWords = sizeof(Value) / sizeof(std::uint64_t);

 public:
  using Image = std::array<std::uint64_t, 1 + kWords>;

  /// [owner]
  void publish(const Value& value, PublishCount& publications) noexcept {
    const auto plain = std::bit_cast<std::array<std::uint64_t, kWords>>(value);
    const std::uint64_t version = publications.next();
    version_.store(version - 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(plain[i], std::memory_order_relaxed);
    version_.store(version, std::memory_order_release);
  }
  /// [others] False while it is being changed.
  bool read(Value& value) const noexcept {
    std::array<std::uint64_t, kWords> plain;
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < kWords; ++i) plain[i] = words_[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    value = std::bit_cast<Value>(plain);
    return version % 2 == 0 && version_.load(std::memory_order_relaxed) == version;
  }
  /// [others] Of what a system call has copied in whatever order, twice, one after the other. False if it was being
  /// changed: what was newer than its version in the first shows by the version of the second, what was older by
  /// itself.
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
  std::uint32_t key = 0;  // 0: nothing
  std::uint32_t domain = 0;
  std::uint64_t access = 0;
  std::uint64_t iova = 0, length = 0;  // bytes
  std::uint64_t begin = 0, end = 0;    // what of it lies in the arena
  std::uint64_t offset = 0;            // of `begin`; in OwnedRecords its address
};

struct SharedPair {
  std::array<std::uint8_t, 16> peer_ip{};  // whom it is connected to
  std::uint32_t peer_scope = 0, peer_port = 0;
  std::uint32_t number = 0, peer_number = 0;
  std::uint32_t domain = 0;
  std::uint32_t rights = 0;  // access flags, 0 while it takes no requests; no reads and atomics if it answers none
};

/// Memory for one put or one get.
struct SharedExposure {
  std::uint64_t key = 0;
  std::uint64_t offset = 0, length = 0;  // in the arena; offset 0: elsewhere, and the owner's records tell where
  std::uint32_t port = 0;
  std::uint32_t is_writable = 0;
};

/// Who wants to use it swaps its key for his name, so that he alone does; so does the owner with 0, who withdraws it.
/// A name is the bit that the owner gave him in its doorbell, plus one: less than any key.
struct alignas(64) PublishedExposure {
  std::atomic<std::uint64_t> holder{0};
  SharedRecord<SharedExposure> record;

  /// [owner]
  void publish(const SharedExposure& exposure, PublishCount& publications) noexcept {
    record.publish(exposure, publications);
    holder.store(exposure.key, std::memory_order_release);
  }
  /// Puts `to` in the place of `from`; what stood there.
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
/// What only the owner can write and others have to read by system calls (shm/identity.hpp): an address in its
/// process is believed, so no other peer may have a say in it. A place is used again when nobody holds it any more.
struct OwnedExposure {
  std::atomic<std::uint64_t> key{0};  // 0: withdrawn
  std::uint64_t address = 0, length = 0;
  std::uint64_t is_writable = 0;

  /// [owner]
  void publish(const OwnedExposure& exposure) noexcept {
    address = exposure.address;
    length = exposure.length;
    is_writable = exposure.is_writable;
    key.store(exposure.key.load(std::memory_order_relaxed), std::memory_order_release);
  }
};
/// Regions and queue pairs stand here as in the tables, but that all of a region is told, by its address.
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
