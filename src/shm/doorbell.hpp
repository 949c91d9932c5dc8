#pragma once
// The doorbell of one engine, shared with all its peers on this host: a bit for each peer that has news, a summary of
// the bits, and whether the owner sleeps. So an idle peer costs the owner nothing, and a peer's news cost a system call
// only when the owner sleeps: then whoever rings first nudges it over their connection (Socket).
//
// A peer rings when the owner does not look at their rings by itself (PairSide::is_watching). All words here are only
// hints: a lying peer can make the owner look in vain, or late, at others' rings, and nothing else.

#include <atomic>
#include <cstdint>

#include <fairlead/error.hpp>

#include "shm/memory.hpp"

namespace fairlead::shm {

struct DoorbellPage {
  static constexpr std::uint32_t kWords = 64;
  static constexpr std::uint32_t kBits = 64 * kWords;
  alignas(128) std::atomic<std::uint64_t> summary{0};  // a bit for each word that may have bits
  alignas(128) std::atomic<std::uint32_t> is_asleep{0};
  alignas(128) std::atomic<std::uint64_t> words[kWords]{};
};
inline constexpr Memory::Layout kShmBellLayout{.head_bytes = 4096};
static_assert(sizeof(DoorbellPage) <= 4096 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The owner's side, and each peer's.
class Doorbell {
 public:
  Doorbell() = default;
  explicit Doorbell(Memory memory);
  static Result<Doorbell> create();

  int memory_descriptor() const noexcept { return memory_.descriptor(); }

  /// [peer] Sets our bit. True if the owner sleeps and nobody else wakes it: then we have to. A full barrier.
  bool ring(std::uint32_t bit) noexcept {
    const std::uint64_t mask = 1ULL << (bit % 64);
    if ((page_->words[bit / 64].fetch_or(mask) & mask) == 0) page_->summary.fetch_or(1ULL << (bit / 64));
    return page_->is_asleep.load() != 0 && page_->is_asleep.exchange(0) != 0;
  }

  /// [owner] Whether somebody rang.
  bool has_rung() const noexcept { return page_->summary.load(std::memory_order_relaxed) != 0; }
  /// [owner] Takes all bits and calls visit(bit) for each.
  template <typename Visit>
  void take(Visit&& visit) {
    for (std::uint64_t words = page_->summary.exchange(0); words != 0; words &= words - 1) {
      const auto word = static_cast<std::uint32_t>(__builtin_ctzll(words));
      for (std::uint64_t bits = page_->words[word].exchange(0); bits != 0; bits &= bits - 1)
        visit(word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }
  }
  /// [owner] From now on one of those who ring wakes us. Look again after it, before sleeping.
  void announce_sleep() noexcept { page_->is_asleep.store(1); }
  /// [owner] Awake: nobody has to any more.
  void end_sleep() noexcept { page_->is_asleep.store(0); }

 private:
  Memory memory_;
  DoorbellPage* page_ = nullptr;
};

}  // namespace fairlead::shm
