#pragma once
// Permissions for a peer to read a message in place, in our arena. Each valid ticket has a word in the pair's page. The
// owner may revoke it at any time, even while the peer reads. The peer therefore checks the word again after reading,
// before it uses the copy. Nobody waits.

#include <array>
#include <atomic>
#include <cstdint>

namespace fairlead::shm {

class Tickets {
 public:
  static constexpr std::uint32_t kCount = 128;
  using Words = std::atomic<std::uint32_t>[kCount];

  /// Issues a ticket for the message named by `cookie`. Returns 0 if all are in use.
  std::uint32_t give(Words& words, std::uint64_t cookie) {
    if (free_count_ == 0) return 0;
    const std::uint32_t index = free_[--free_count_];
    serial_ = serial_ == kSerials - 1 ? 1 : serial_ + 1;
    given_[index] = {serial_ * kCount + index, cookie};
    words[index].store(given_[index].ticket, std::memory_order_release);
    return given_[index].ticket;
  }
  /// Ends a ticket when the peer has finished. Returns false if it was revoked.
  bool end(Words& words, std::uint32_t ticket) {
    const std::uint32_t index = ticket % kCount;
    if (given_[index].ticket != ticket) return false;
    give_up(words, index);
    return true;
  }
  /// Revokes the ticket of this message: the peer discards whatever it reads from now on. Returns false if there is
  /// none.
  bool take_back(Words& words, std::uint64_t cookie) {
    for (std::uint32_t index = 0; index < kCount; ++index) {
      if (given_[index].ticket == 0 || given_[index].cookie != cookie) continue;
      give_up(words, index);
      std::atomic_thread_fence(std::memory_order_seq_cst);  // before the caller writes to the memory
      return true;
    }
    return false;
  }
  /// Revokes all tickets ever given: their messages are about to end, so their memory becomes the program's again.
  static void take_back_all(Words& words) {
    for (std::atomic<std::uint32_t>& word : words) word.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before anybody writes to the memory
  }
  bool is_good(std::uint32_t ticket) const { return given_[ticket % kCount].ticket == ticket; }
  bool is_empty() const { return free_count_ == kCount; }

 private:
  static constexpr std::uint32_t kSerials = ~0U / kCount;
  struct Given {
    std::uint32_t ticket = 0;  // 0: none
    std::uint64_t cookie = 0;
  };

  void give_up(Words& words, std::uint32_t index) {
    words[index].store(0, std::memory_order_relaxed);
    given_[index] = {};
    free_[free_count_++] = static_cast<std::uint8_t>(index);
  }
  static constexpr std::array<std::uint8_t, kCount> all() {
    std::array<std::uint8_t, kCount> indices{};
    for (std::uint32_t i = 0; i < kCount; ++i) indices[i] = static_cast<std::uint8_t>(i);
    return indices;
  }

  std::array<Given, kCount> given_{};
  std::array<std::uint8_t, kCount> free_ = all();
  std::uint32_t free_count_ = kCount;
  std::uint32_t serial_ = 0;
};

}  // namespace fairlead::shm
