#pragma once
// The doorbell of one engine, shared with all its local peers. It has a bit per peer with news, a summary of these
// bits, and a flag that the owner sleeps. An idle peer thus costs the owner nothing. News cost a system call only while
// the owner sleeps: the first peer to ring then nudges it over their socket (Socket).
//
// A peer rings when the owner does not poll its ring (PairSide::is_watching). All words here are only hints. A lying
// peer can make the owner look in vain, or look late at others' rings, and nothing else.

#include <atomic>
#include <cstdint>

#include <fairlead/error.hpp>

#include "shm/memory.hpp"

namespace fairlead::shm {

struct DoorbellPage {
  static constexpr std::uint32_t kWords = 64;
  static constexpr std::uint32_t kBits = 64 * kWords;
  alignas(128) std::atomic<std::uint64_t> summary{0};  // a bit for each word that may have bits set
  alignas(128) std::atomic<std::uint32_t> is_asleep{0};
  alignas(128) std::atomic<std::uint64_t> words[kWords]{};
};
inline constexpr Memory::Layout kShmBellLayout{.head_bytes = 4096};
static_assert(sizeof(DoorbellPage) <= 4096 && std::atomic<std::uint64_t>::is_always_lock_free);

/// Both the owner and each peer use this class.
class Doorbell {
 public:
  Doorbell() = default;
  explicit Doorbell(Memory memory);
  static Result<Doorbell> create();

  int memory_descriptor() const noexcept { return memory_.descriptor(); }

  /// [peer] Sets the bit. Returns true if the owner sleeps and this caller must wake it. Acts as a full barrier.
  bool ring(std::uint32_t bit) noexcept {
    const std::uint64_t mask = 1ULL << (bit % 64);
    if ((page_->words[bit / 64].fetch_or(mask) & mask) == 0) page_->summary.fetch_or(1ULL << (bit / 64));
    return page_->is_asleep.load() != 0 && page_->is_asleep.exchange(0) != 0;
  }

  /// [owner] Returns whether a peer rang.
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
  /// [owner] Announces sleep: from now on, one ringing peer wakes the owner. Check for news once more before sleeping.
  void announce_sleep() noexcept { page_->is_asleep.store(1); }
  /// [owner] Ends the sleep: peers need not wake the owner any more.
  void end_sleep() noexcept { page_->is_asleep.store(0); }

 private:
  Memory memory_;
  DoorbellPage* page_ = nullptr;
};

}  // namespace fairlead::shm
